"""Answering questions of Hopland with `hopscope eval`'s scheduling and by FlashRAG's pipelines.

Both use the embedded reader, the same questions, the same passages (of Hopscope's index) and the
same prompts. FlashRAG's generator is its own for transformers' models, in batches of 4 as by its
defaults and in larger ones. Ours is what a worker of `hopscope eval` does at its defaults, without
the database: up to 64 threads, whose requests join a running decode. A turn answers all questions;
what a process does only once is not in its time: making the index, loading the reader. A pass is
one call of the model.

FlashRAG's IRCoT cuts a thought at its full stop, with which it is also lost; here it is put back,
else the reader writes no chain. Its generator takes the lengths of the prompts of a later batch
from the first one, and then ends replies after a word; so it is called with a batch at a time. It
writes at most two thoughts by default; with ten, as ours, every chain can end.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import mean
from time import thread_time
from typing import Any, NamedTuple

from experiments.answering import Passes, Way, answered, counted

from hopscope.api import parts
from hopscope.lab.experiments.concurrency import MOST
from hopscope.runtime.corpora import hopland
from hopscope.runtime.ports import Retriever
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.readers import tiny
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Question
from peer_parts.rounds import PeerMissingError, Table, ratio, spread, taken_in_turn

OURS = "Hopscope"
SHOWN = {"naive": 5, "ircot": 4}
"""Passages of a retrieval: our defaults."""
PROMPTS = {"naive": "naive/answer", "ircot": "ircot/reason"}
THOUGHTS = 10
"""Most thoughts: our default."""
BATCHES = (4, 16)
CONTEXT = 2048
"""Tokens of the reader's context."""


class Job(NamedTuple):
    """What both sides do."""

    workflow: str
    questions: int
    retriever: Retriever
    rounds: int


class Turns:
    """What the turns of one side gave."""

    def __init__(self) -> None:
        self.passes = Passes()
        self.right = 0.0
        """Exact matches in the last turn, as a share."""


def measure(*, questions: int, rounds: int, workflows: Sequence[str]) -> list[Table]:
    peer = imported()
    tables = []
    retriever = parts.corpus(parts.HOPLAND)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workflow in workflows:
            job = Job(workflow, questions, retriever, rounds)
            ours = {OURS: _ours(job, {})}
            ours[f"{OURS}, {BATCHES[1]} threads"] = _ours(job, {}, BATCHES[1])
            if workflow == "ircot":
                chain = {"reader": "false"}
                ours[f"{OURS}, reader=false"] = _ours(job, chain)
                ours[f"{OURS}, reader=false, {BATCHES[1]} threads"] = _ours(job, chain, BATCHES[1])
            theirs = {
                label: _theirs(peer, folder, job, batch, thoughts)
                for label, batch, thoughts in _ways(workflow, questions)
            }
            turns = {**ours, **theirs}
            for turn, kept in turns.values():  # what is only done once
                turn()
                kept.passes = Passes()
            seconds = taken_in_turn({label: turn for label, (turn, _) in turns.items()}, rounds)
            own = seconds[OURS]
            rows = [
                (
                    label,
                    str(spread([1000 * each / questions for each in seconds[label]])),
                    f"{1000 * kept.passes.seconds / rounds / questions:.3g}",
                    str(ratio(seconds[label], own)),
                    f"{len(kept.passes.shapes) / rounds / questions:.2f}",
                    f"{kept.right:.2f}",
                )
                for label, (_, kept) in turns.items()
            ]
            columns = (
                "",
                "ms a question",
                "of it in passes",
                "times ours",
                "passes a question",
                "EM",
            )
            tables.append(Table(f"{workflow}, {questions} questions", columns, rows))
    return tables


def _ways(workflow: str, questions: int) -> Iterator[tuple[str, int, int]]:
    for batch in sorted({*BATCHES, questions}):
        if workflow == "naive":
            yield f"FlashRAG, batches of {batch}", batch, 1
            continue
        if batch == BATCHES[0]:
            yield f"FlashRAG, batches of {batch}, 2 thoughts", batch, 2
        yield f"FlashRAG, batches of {batch}, {THOUGHTS} thoughts", batch, THOUGHTS


def imported() -> dict[str, Any]:
    """FlashRAG's classes by name.

    Raises:
        PeerMissingError: it cannot be imported.
    """
    names = {
        "config": ("Config",),
        "dataset": ("Dataset",),
        "generator": ("HFCausalLMGenerator",),
        "pipeline": ("IRCOTPipeline", "SequentialPipeline"),
        "prompt": ("PromptTemplate",),
    }
    try:
        return {
            each: getattr(import_module(f"flashrag.{module}"), each)
            for module, classes in names.items()
            for each in classes
        }
    except (ImportError, AttributeError) as error:
        raise PeerMissingError(f"FlashRAG cannot be imported: {error}") from error


def _ours(
    job: Job, options: Mapping[str, str], threads: int = MOST
) -> tuple[Callable[[], None], Turns]:
    kept = Turns()
    asked = _asked(job.questions)
    way = Way(threads=min(threads, job.questions), continuous=True)
    # One for each turn, which must not remember the prompts of the one before.
    readers = [parts.reader("tiny") for _ in range(1 + job.rounds)]

    def turn() -> None:
        with counted(kept.passes):
            found = answered(job.workflow, way, readers.pop(), job.retriever, asked, options)
        kept.right = _right(asked, [answer or "" for answer in found])

    return turn, kept


def _asked(questions: int) -> list[Question]:
    return [item.question for item in hopland.questions("dev")][:questions]


def _right(asked: Sequence[Question], answers: Sequence[str]) -> float:
    pairs = zip(answers, asked, strict=True)
    return mean(exact_match(answer, question.answers) for answer, question in pairs)


@contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _theirs(
    peer: dict[str, Any], folder: Path, job: Job, batch: int, thoughts: int
) -> tuple[Callable[[], None], Turns]:
    kept = Turns()
    asked = _asked(job.questions)
    with _quiet():
        config = peer["Config"](config_dict=_settings(folder, batch))
        generator = _generator(peer, config, batch, kept)
    template = _template(peer, config, job.workflow)
    parts_of = {"retriever": Passages(job), "generator": generator}

    def turn() -> None:
        rows = [{"id": q.id, "question": q.text, "golden_answers": [*q.answers]} for q in asked]
        with _quiet():
            data = peer["Dataset"](config, data=rows)
            if job.workflow == "naive":
                pipeline = peer["SequentialPipeline"](config, template, **parts_of)
            else:
                pipeline = peer["IRCOTPipeline"](config, template, max_iter=thoughts, **parts_of)
            found = pipeline.run(data)
        kept.right = _right(asked, [item.pred for item in found])

    return turn, kept


def _settings(folder: Path, batch: int) -> dict[str, Any]:
    return {
        "framework": "hf",
        "generator_model": "hopland",
        "generator_model_path": str(tiny.FOLDER),
        "generator_max_input_len": CONTEXT,
        "generator_batch_size": batch,
        "gpu_id": "",
        "index_path": "none",
        "dataset_name": "hopland",
        "save_dir": str(folder / "flashrag"),
        "save_intermediate_data": False,
        "save_metric_score": False,
        "metrics": ["em"],
    }


def _generator(peer: dict[str, Any], config: Any, batch: int, kept: Turns) -> Any:
    parent: Any = peer["HFCausalLMGenerator"]

    class Batches(parent):  # type: ignore[misc]  # known at run time only
        """A batch at a time; a thought gets its full stop back."""

        def generate(self, input_list: list[str], **options: Any) -> list[str]:
            replies: list[str] = []
            for start in range(0, len(input_list), batch):
                replies += super().generate(input_list[start : start + batch], **options)
            return [f"{reply.strip()}." for reply in replies] if "stop" in options else replies

    generator = Batches(config)

    def begin(_: object, inputs: object, options: dict[str, Any]) -> None:
        kept.passes.shapes.append(tuple(options["input_ids"].shape))
        kept.passes.seconds -= thread_time()

    def end(*_: object) -> None:
        kept.passes.seconds += thread_time()

    generator.model.register_forward_pre_hook(begin, with_kwargs=True)
    generator.model.register_forward_hook(end)
    return generator


def _template(peer: dict[str, Any], config: Any, workflow: str) -> Any:
    parent: Any = peer["PromptTemplate"]

    class Ours(parent):  # type: ignore[misc]  # known at run time only
        """Our prompts, cut to the context as FlashRAG's are."""

        def get_string(
            self,
            question: str = "",
            retrieval_result: Sequence[dict[str, Any]] = (),
            previous_gen: str = "",
            **_: object,
        ) -> str:
            shown = [found["passage"] for found in retrieval_result]
            chain = {"thoughts": [previous_gen] if previous_gen else []}
            options = chain if workflow == "ircot" else {}
            prompt = DEFAULT_PROMPTS.render(PROMPTS[workflow], shown, question=question, **options)
            messages = [message.model_dump() for message in prompt.messages]
            text = self._get_tokenizer().apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            cut: str = self.truncate_prompt(text + prompt.prefix)
            return cut

    return Ours(config)


class Passages:
    """Our retriever by the interface of FlashRAG's."""

    def __init__(self, job: Job) -> None:
        self._shown = SHOWN[job.workflow]
        self._retriever = job.retriever

    def batch_search(self, queries: Sequence[str], *, return_score: bool = False) -> Any:
        found = self._retriever.search(list(queries), k=self._shown)
        passages = [
            [{"id": hit.passage.id, "passage": hit.passage} for hit in hits] for hits in found
        ]
        scores = [[hit.score for hit in hits] for hits in found]
        return (passages, scores) if return_score else passages
