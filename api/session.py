"""Questions from Python, as on the command line: models, index and database are loaded once.

Invariant: no result is lost. A run is in the database before it is measured, and it is returned
even if it could not be measured or stored.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self

from hopscope.api import given, parts, retrieval, spending
from hopscope.api.appraiser import RULES, Appraiser, Measuring, split
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credits import Credits
from hopscope.api.given import EntailmentPart, PolicyPart, ReaderPart, RetrieverPart, WorkflowPart
from hopscope.api.loading import Parts
from hopscope.api.measured_run import MeasuredRun
from hopscope.api.presets import Presets
from hopscope.api.spending import Spending
from hopscope.runtime.budget.ledger import Limits
from hopscope.runtime.errors import UsageError
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Hit, Question, Run
from hopscope.tracing.meters import DEFAULT_METERS

if TYPE_CHECKING:
    from hopscope.api.answering import RunResult
    from hopscope.api.checkpoints import CheckpointSettings
    from hopscope.runtime.ports import Entailment, Reader, Retriever
    from hopscope.store.store import Store as RecordStore


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run. The steps it took are stored."""

    def __init__(self, run: MeasuredRun) -> None:
        super().__init__(f"run {run.id[:12]} was stopped")
        self.run = run
        """The run with the steps it took."""


class Session:
    """A reader, a retriever and the other parts that answer and measure questions.

        with Session(reader="hf:my/model", retriever="my-index", store="runs.db") as session:
            run = session.ask("Who founded the company?", gold="Ada Example")
            run.show()

    A text names a part as on the command line: by name, or by the path of a file of code, which is
    run (docs/extending.md). The part itself may stand there, too: a reader or a pair (model,
    tokenizer) of transformers, a retriever or any function `(query, k) -> passages`, an
    entailment, a policy, a workflow, a store. Named parts are loaded once, when first needed.

    Threads may share a session: it answers one question at a time. To answer many at once, use
    `hopscope.evaluate`. All works inside a running event loop, such as that of a notebook; the
    twins that end in `_async` do not block it.
    """

    def __init__(
        self,
        *,
        reader: ReaderPart = parts.TINY,
        retriever: RetrieverPart = parts.HOPLAND,
        store: "str | Path | RecordStore | None" = None,
        workflow: WorkflowPart = "ircot",
        entailment: EntailmentPart = "lexical",
        samples: int = 10,
        seed: int = 0,
        meters: Sequence[str] = DEFAULT_METERS,
        rules: Sequence[str] = RULES,
        options: Mapping[str, object] | None = None,
        presets: Sequence[str] = (),
        prompts: str | Path | None = None,
        policy: PolicyPart = parts.NATIVE,
        limits: Limits | None = None,
        prices: str | Path | None = None,
        thinking: str | int | None = None,
        trace_file: str | Path | None = None,
        trace_content: bool = True,
    ) -> None:
        """
        Args:
            reader: `tiny` (embedded, knows Hopland only), `hf:MODEL`, `vllm:MODEL`, `fid:MODEL` or
                `openai:URL#MODEL`; docs/readers.md.
            retriever: `hopland` (embedded), the folder of an index, or an expression;
                docs/workflows.md.
            store: a file or URL; by default the database of the command line (`HOPSCOPE_DB`, else a
                file in the user's data folder). `sqlite://` keeps runs as long as the session.
            workflow: the default workflow of questions.
            entailment: the judge of equal meaning: `lexical`, `equivalence`,
                `nli:MODEL`, `bem:MODEL` or `judge:READER`.
            samples: answers sampled for each belief.
            seed: the seed of all sampling.
            meters, rules: the meters, and the rules that share the gain; without meters nothing is
                measured.
            options: of the workflow, `{"k": 5}`, and of meters and rules,
                `{"seper.weight": "uniform"}`.
            presets: named sets of options, such as `seper-paper`; `options` precede them.
            prompts: a folder of prompts, or the name of a set, in place of the reader's or default
                ones; docs/setup/prompts.md.
            policy: decides before each retrieval whether it is worth its price.
            limits: the maximum tokens, calls, retrievals, seconds and cost of a run.
            prices: a TOML table of model prices.
            thinking: `on`, `off`, `auto` or a number of tokens, of a reader that thinks.
            trace_file: spans are appended to it as OTLP JSON lines.
            trace_content: whether spans carry questions, prompts, passages and answers.

        Raises:
            UsageError: there is no such preset, a prompt cannot be used, or `thinking` does not go
                with the reader.
        """
        thinks = None if thinking is None else str(thinking)
        reader, retriever = given.named(reader), given.named(retriever)
        workflow, entailment = given.named(workflow), given.named(entailment)
        policy = given.named(policy)
        if isinstance(reader, str):
            reader = parts.thoughtful(reader, thinks)
        elif thinks is not None:
            raise UsageError(
                "thinking applies to a reader given by name: set it where you make your reader"
            )
        chosen = parts.prompts_of(reader) if prompts is None else str(prompts)
        self.presets = Presets.named(given.names(presets), chosen)
        if isinstance(entailment, str):
            entailment = parts.judging(entailment, self.presets.prompts)
        self.parts = Parts(
            reader=reader, retriever=retriever, entailment=entailment, store=store, seed=seed
        )
        if not isinstance(limits, Limits | None):
            raise UsageError(f"limits: give hopscope.Limits(...), not {limits!r}")
        self.workflow = workflow
        self.policy = policy
        self.options = given.texts(options)
        self.spending = Spending(
            policy=policy if isinstance(policy, str) else parts.NATIVE,
            limits=limits or Limits(),
            prices=None if prices is None else Path(prices),
        )
        self.samples, self.seed = samples, seed
        self.meters = tuple(map(given.named, given.names(meters)))
        self.rules = tuple(map(given.named, given.names(rules)))
        self.trace_file = None if trace_file is None else Path(trace_file)
        self.trace_content = trace_content
        self.turn = RLock()
        """Held while a question is answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, unless it was given open. The session opens it again if needed."""
        self.parts.close()

    @property
    def reader(self) -> "Reader":
        """The reader, loaded when it is first needed.

        Raises:
            UsageError, ReaderError: it cannot be loaded.
        """
        return self.parts.reader

    @property
    def retriever(self) -> "Retriever":
        """The retriever, opened when it is first needed.

        Raises:
            UsageError, RetrieverError: it cannot be opened.
        """
        return self.parts.retriever

    @property
    def entailment(self) -> "Entailment":
        """The judge of equal meaning, loaded when it is first needed.

        Raises:
            UsageError: it cannot be loaded.
        """
        return self.parts.entailment

    @property
    def store(self) -> "RecordStore":
        """The database, opened when it is first needed.

        Raises:
            UsageError, StoreError: it cannot be opened.
        """
        return self.parts.store

    def ask(
        self,
        question: str | Question,
        gold: str | Iterable[str] | None = None,
        *,
        workflow: "WorkflowPart | None" = None,
        k: int | None = None,
        options: Mapping[str, object] | None = None,
        checkpoint: str | Path | None = None,
        run_id: str | None = None,
    ) -> MeasuredRun:
        """Answer a question, store the run, measure each step, and store the credits.

        A failed run is stored and returned with its `error`. A run that could not be measured or
        stored is returned with its `problems`, which are also logged.

        Args:
            gold: right answers (aliases); SePer needs one, GroGU does not.
            k: passages per retrieval; short for `options={"k": k}`.
            options: of the workflow, meters and rules; they precede those of the session.
            checkpoint: a file that keeps the state after each step.
            run_id: continue this run of the checkpoint.

        Raises:
            UsageError: a part, an option or the question cannot be used.
            HopscopeError: a part cannot be loaded.
            Interrupted: Ctrl-C; the run with the steps it took is stored.
            SystemExit: a part called `sys.exit`; the run is stored as failed.
        """
        item = given.question(question, gold)
        chosen, own = given.workflow_and_options(
            self.workflow if workflow is None else given.named(workflow)
        )
        name = chosen if isinstance(chosen, str) else ""
        self.presets.check(meters=self.meters, workflows=[name])
        preset = {**self.presets.of_workflow(name), **self.presets.of_meters(self.meters)}
        wanted = {**preset, **self.options, **own, **given.texts(options)}
        with self.turn:
            found = self._answer(
                item,
                chosen,
                self._with_depth(chosen, wanted, k),
                None if checkpoint is None else Path(checkpoint),
                run_id,
            )
        if found.interrupted:
            raise Interrupted(found.run)
        return found.run

    def ask_many(
        self,
        questions: Iterable[str | Question],
        *,
        workflow: "WorkflowPart | None" = None,
        k: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Iterator[MeasuredRun]:
        """`ask` each question in turn, when the iterator reaches it.

        Raises:
            UsageError, HopscopeError, Interrupted: as `ask`.
        """
        if isinstance(questions, str):
            raise UsageError("questions: give a list; for one question use ask")
        for question in questions:
            yield self.ask(question, workflow=workflow, k=k, options=options)

    async def ask_async(
        self,
        question: str | Question,
        gold: str | Iterable[str] | None = None,
        *,
        workflow: "WorkflowPart | None" = None,
        k: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> MeasuredRun:
        """`ask` in a thread, which leaves the event loop free."""
        return await asyncio.to_thread(
            self.ask, question, gold, workflow=workflow, k=k, options=options
        )

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` passages for a query, the best first.

        Raises:
            UsageError, RetrieverError: the retriever cannot be opened, or it failed.
        """
        [hits] = self.retriever.search([query], k=k)
        return hits

    def credit(
        self,
        run: str | Run | MeasuredRun = "last",
        *,
        meters: Sequence[str] | None = None,
        rules: Sequence[str] | None = None,
        counterfactual: str = CounterfactualName.empty,
        mode: str = Mode.frozen,
        over: str = Over.steps,
        gold: str | Iterable[str] | None = None,
        samples: int | None = None,
        options: Mapping[str, object] | None = None,
        calls: int | None = None,
    ) -> Credits:
        """Share the worth of a run among its steps or passages in another way, and store it.

        It is measured with the reader, the entailment and the seed of this session.

        Args:
            run: a run, or the id of a stored one, its beginning, or `last`.
            counterfactual: the stand-in for a missing step: `empty`, `random` passages, or
                `leave-out` (passages that other steps retrieved too).
            mode: `frozen` (later queries as recorded) or `replay` (the workflow runs again).
            over: `steps` or `passages`.
            gold: right answers to measure against; by default those of the run.
            options: of meters and rules, as `{"shapley.permutations": 128}`.
            calls: the credit budget, the most replies that each meter draws; None for no limit.

        Raises:
            UsageError: there is no such run, meter, rule, option or mode.
            HopscopeError: it cannot be measured, or not stored.
        """
        from hopscope.api.credit_runs import CreditSettings
        from hopscope.api.creditings import Creditings

        with self.turn:
            record = given.run(run, self.store)
            _, of_meters = split({**self.options, **given.texts(options)})
            if meters is not None and not given.names(meters):
                raise UsageError("meters: name at least one to measure with")
            chosen = tuple(map(given.named, given.names(meters or self.meters or DEFAULT_METERS)))
            wanted = CreditSettings(
                rules=tuple(map(given.named, given.names(rules or self.rules))),
                meters=chosen,
                counterfactual=given.choice(CounterfactualName, counterfactual, "counterfactual"),
                mode=given.choice(Mode, mode, "mode"),
                over=given.choice(Over, over, "over"),
                corpus=self.parts.named_retriever,
                reader=self.reader,
                entailment=self.entailment,
                samples=samples or self.samples,
                seed=self.seed,
                options={**self.presets.of_meters(chosen), **of_meters},
                golds=given.golds(gold),
                calls=calls,
            )
            self.store.save(record)
            [credited] = Creditings(self.store, wanted).each({record.id: None}, again=False)
            return Credits(record, credited.found.credits, credited.found.appraisal)

    def _answer(
        self,
        question: Question,
        workflow: WorkflowPart,
        options: dict[str, str],
        checkpoint: Path | None,
        run_id: str | None,
    ) -> "RunResult":
        from hopscope.api.answering import answer
        from hopscope.api.checkpoints import opened
        from hopscope.runtime.execution.state import Deps
        from hopscope.tracing.spans.telemetry import captures_content, telemetry

        own, of_meters = split(options)
        built = given.workflow(workflow, own)
        measuring = self._measuring(of_meters)
        measuring.parse()  # reports mistakes before anything is loaded
        self._check()
        judge = self.entailment
        with opened(checkpoint) as checkpoints, telemetry(self.trace_file):
            store = self.store
            if checkpoints and run_id is None:
                settings = self._settings(question, workflow, options)
                run_id = checkpoints.begin(settings.model_dump_json())
            reader = self.reader
            deps = Deps(
                reader=reader,
                retriever=self.retriever,
                entailment=judge,
                seed=self.seed,
                capture_content=self.trace_content and captures_content(),
                policy=given.policy(
                    self.policy,
                    workflow=built.name,
                    reader_name=reader.name,
                    prompts=(built.prompts or DEFAULT_PROMPTS).name,
                ),
                ledger=self.spending.ledger(reader.name),
            )
            found = answer(
                question,
                built,
                deps,
                Appraiser(reader, judge, measuring) if self.meters else None,
                store,
                checkpointer=checkpoints.saver if checkpoints else None,
                run_id=run_id,
                prices=self.spending.prices,
            )
            retrieval.tell_cut(deps.retriever)
        return found

    def _measuring(self, options: Mapping[str, str]) -> Measuring:
        return Measuring(
            samples=self.samples,
            seed=self.seed,
            options=options,
            meters=self.meters,
            rules=self.rules,
        )

    def _check(self) -> None:
        """Report mistakes before anything is loaded.

        Raises:
            UsageError: a part has an unknown name.
        """
        if isinstance(self.parts.named_retriever, str):
            retrieval.parse(self.parts.named_retriever)
        if isinstance(self.policy, str):
            spending.check(Spec.parse(self.policy))

    def _with_depth(
        self, workflow: WorkflowPart, options: dict[str, str], k: int | None
    ) -> dict[str, str]:
        """The options, with the number of passages per retrieval if the workflow takes it.

        Raises:
            UsageError: `k` is given, and the workflow has no such option.
        """
        if not isinstance(workflow, str):
            return options if k is None else {**options, "k": str(k)}
        if k is not None:
            if not parts.takes(workflow, "k"):
                raise UsageError(f"k: workflow {workflow} retrieves nothing")
            return {**options, "k": str(k)}
        if not isinstance(self.parts.named_retriever, str):
            return options
        return {**retrieval.depth(workflow, retrieval.parse(self.parts.named_retriever)), **options}

    def _settings(
        self, question: Question, workflow: WorkflowPart, options: dict[str, str]
    ) -> "CheckpointSettings":
        """The settings that a checkpoint stores.

        Raises:
            UsageError: a part has no name to rebuild it from.
        """
        from hopscope.api.checkpoints import CheckpointSettings

        corpus, reader, entailment = (
            self.parts.named_retriever,
            self.parts.named_reader,
            self.parts.named_entailment,
        )
        if (
            not isinstance(workflow, str)
            or not isinstance(corpus, str)
            or not isinstance(reader, str)
            or not isinstance(entailment, str)
            or not isinstance(self.policy, str)
        ):
            raise UsageError(
                "checkpoint: it stores names to rebuild parts from; name the workflow, reader, "
                "retriever, entailment and policy"
            )
        return CheckpointSettings(
            question=question,
            workflow=workflow,
            options=options,
            corpus=corpus,
            reader=reader,
            entailment=entailment,
            samples=self.samples,
            seed=self.seed,
            meters=self.meters,
            rules=self.rules,
            spend=self.spending,
        )
