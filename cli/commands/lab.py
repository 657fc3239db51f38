"""`hopscope lab`: test the measurements against a known truth."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.options import code_options, measuring, sample
from hopscope.cli.options.configured import ArgumentGroup
from hopscope.cli.options.help import MEASURING, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Json
from hopscope.cli.options.sample import Order

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hopscope.lab.dataset.ordering import Sample
    from hopscope.lab.equivalence.data import LeftOut
    from hopscope.lab.equivalence.evaluate import Evaluation, HumanAgreement, Judge, Mistake
    from hopscope.lab.equivalence.reliability import Reliability
    from hopscope.lab.running_suites import Suites

app = typer.Typer(cls=ArgumentGroup)

LEXICAL = "lexical"
"""Here the papers' lexical match, which is a metric and no entailment."""
LEXICAL_RULES = "lexical-rules"
"""Here the entailment that is `lexical` everywhere else."""

LEFT_OUT_NAMED = 10
"""Records left out that the note on stderr names; `--json` has all."""


class Part(StrEnum):
    all = "all"
    train = "train"
    held_out = "held-out"


class Rule(StrEnum):
    entails = "entails"
    seper = "seper"
    seper_hard = "seper_hard"


@app.callback(invoke_without_command=True)
def suites(
    context: typer.Context,
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE",
            callback=code_options.of_component,
            help="Suites of `hopscope list suites`; by default all.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        code_options.component(
            "--only",
            metavar="NAME",
            help="The same as SUITE; repeatable. [env var: HOPSCOPE_LAB_ONLY, one a line]",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            envvar="HOPSCOPE_LAB_LIMIT",
            help="Questions of each kind in each suite.",
            rich_help_panel=SELECTION,
        ),
    ] = 100,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Questions in place of a generated world: HotpotQA, 2WikiMultiHopQA, MuSiQue, "
            "FlashRAG, MS MARCO, BEIR, TREC topics or Hopscope's own format, or hopland:dev.",
            envvar="HOPSCOPE_LAB_DATA",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        code_options.component(
            "--corpus",
            metavar="CORPUS",
            help="The corpus to search with --data, as in `hopscope run`; by default the passages "
            "in FILE.",
            envvar="HOPSCOPE_LAB_CORPUS",
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            "--qrels",
            metavar="FILE",
            help="Judgments in TREC's or BEIR's form: the gold passages of --data in --corpus.",
            envvar="HOPSCOPE_LAB_QRELS",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    grade: Annotated[
        int,
        typer.Option(
            "--grade",
            min=1,
            metavar="N",
            help="The least label of a gold passage in --qrels, as 3 for perfectly relevant.",
            envvar="HOPSCOPE_LAB_GRADE",
            rich_help_panel=SELECTION,
        ),
    ] = 1,
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            metavar="FILE",
            help="A ranking in TREC's form, as of `hopscope index search --trec`: its passages, "
            "by their ids in --corpus, are the candidates of each question.",
            envvar="HOPSCOPE_LAB_CANDIDATES",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    seed: Seed = 0,
    reader: ReaderSpec = parts.TINY,
    entailment: Annotated[
        list[str] | None,
        code_options.component(
            "--entailment",
            metavar="NAME",
            help="The judge of equal meaning; by default lexical, with --data equivalence. "
            "Repeatable for seper, which compares them. [env var: HOPSCOPE_LAB_ENTAILMENT, one a "
            "line]",
        ),
    ] = None,
    thinking: ThinkingSpec = None,
    other_reader: Annotated[
        str | None,
        code_options.component(
            "--other-reader",
            metavar="READER",
            help="A weaker second reader, for suites that compare two; by default a small one, if "
            "installed.",
            envvar="HOPSCOPE_LAB_OTHER_READER",
        ),
    ] = None,
    preset: measuring.Presets = None,
    option: Annotated[
        list[str] | None,
        code_options.component(
            "-o",
            metavar="KEY=VALUE",
            help="An option of a workflow or meter in the suites, as item.judgment=pointwise, or "
            "judgment=pointwise for every workflow that has it; repeatable. [env var: "
            "HOPSCOPE_LAB_OPTIONS, one a line]",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    prompts: measuring.Prompts = None,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print Markdown tables.", envvar="HOPSCOPE_LAB_MARKDOWN"),
    ] = False,
    json: Json = False,
) -> None:
    """Test meters, credit rules and workflows against a known truth.

    By default the questions are of a generated world; with --data they are those of a file.
    """
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab.running_suites import FileOfQuestions, Suites
    from hopscope.runtime.errors import UsageError

    if context.invoked_subcommand is None:
        if json and markdown:
            raise UsageError("--json and --markdown exclude each other")
        form = "json" if json else "markdown" if markdown else None
        if data is None and (corpus, qrels, candidates) != (None, None, None):
            raise UsageError("--corpus, --qrels and --candidates go with --data FILE")
        if grade > 1 and qrels is None:
            raise UsageError("--grade N goes with --qrels FILE, whose labels it compares")
        names = [*(suite or ()), *(only or ())] or code_options.lines("HOPSCOPE_LAB_ONLY")
        suites = Suites(
            names,
            reader,
            other_reader,
            seed=seed,
            limit=limit,
            presets=measuring.presets(preset),
            options=option or code_options.lines("HOPSCOPE_LAB_OPTIONS"),
            prompts=prompts,
            entailments=entailment or code_options.lines("HOPSCOPE_LAB_ENTAILMENT"),
            file=None if data is None else FileOfQuestions(data, corpus, qrels, grade, candidates),
        )
        _run(suites, form)


def _run(suites: "Suites", form: str | None) -> None:
    """Print each suite's tables before the next suite begins; the form is json, markdown or None.

    Raises:
        typer.Exit: a suite failed.
    """
    from hopscope.lab.suites.figures import as_json
    from hopscope.lab.table_forms import terminal

    found: dict[str, dict[str, JsonValue]] = {}
    failed = False
    try:
        for outcome in suites.run():
            figures = outcome.figures.items()
            found[outcome.name] = {
                name: {**as_json(figure), **suites.given} for name, figure in figures
            }
            failed = failed or outcome.failed
            if outcome.tables and form != "json":
                terminal.show(outcome.tables, form)
                render.say("")
    finally:
        # Ctrl-C in the last suite must not lose the figures of the others.
        if form == "json":
            render.print_json(found)
    if failed:
        raise typer.Exit(1)


@app.command("equivalence")
def equivalence(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            envvar="HOPSCOPE_EQUIVALENCE_FILE",
            help="Human judgements of answers in EVOUNA's format: a JSON list or lines.",
        ),
    ],
    entailment: Annotated[
        str,
        code_options.component(
            "--entailment",
            metavar="NAME",
            help="The judge of answers: equivalence, nli:MODEL, bem:MODEL, judge:READER, lexical "
            "(here the papers' lexical match) or lexical-rules (the entailment called "
            "lexical elsewhere).",
            envvar="HOPSCOPE_EQUIVALENCE_ENTAILMENT",
        ),
    ] = "equivalence",
    metric: Annotated[
        str | None,
        code_options.component(
            "--metric",
            "-m",
            metavar="METRIC",
            help="An answer metric in place of an entailment, as bertscore:MODEL or f1; see "
            "`hopscope list metrics`.",
            envvar="HOPSCOPE_EQUIVALENCE_METRIC",
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            envvar="HOPSCOPE_EQUIVALENCE_THRESHOLD",
            help="An answer with a higher probability or score counts as judged right.",
        ),
    ] = 0.5,
    reader: ReaderSpec = parts.TINY,
    rule: Annotated[
        Rule,
        typer.Option(
            "--rule",
            envvar="HOPSCOPE_EQUIVALENCE_RULE",
            help="From entailments to a judgement: entails (the answer entails a gold, or the "
            "model's own judgement by all golds), seper or seper_hard (SePer-S's and "
            "SePer-H's belief if the answer were the only reply).",
        ),
    ] = Rule.entails,
    part: Annotated[
        Part,
        typer.Option(
            "--part",
            metavar="PART",
            help="The questions: all, train (the half that trained the embedded model) or "
            "held-out.",
            envvar="HOPSCOPE_EQUIVALENCE_PART",
            rich_help_panel=SELECTION,
        ),
    ] = Part.all,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="HOPSCOPE_EQUIVALENCE_LIMIT",
            help="Use only the first N questions by --order.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    order: Annotated[
        Order,
        typer.Option(
            "--order",
            help="stratified: random, the same for the same questions. file: the order of the "
            "file.",
            envvar="HOPSCOPE_EQUIVALENCE_ORDER",
            rich_help_panel=SELECTION,
        ),
    ] = Order.stratified,
    mistakes: Annotated[
        int,
        typer.Option(
            min=0,
            envvar="HOPSCOPE_EQUIVALENCE_MISTAKES",
            help="Show N wrong judgements, the surest first, with their reasons.",
        ),
    ] = 0,
    bins: Annotated[
        bool,
        typer.Option(
            "--bins",
            envvar="HOPSCOPE_EQUIVALENCE_BINS",
            help="Show how many of the answers in each bin of probability are right, and the "
            "expected calibration error; --json has both.",
        ),
    ] = False,
    resamples: Annotated[
        int,
        typer.Option(
            min=100,
            envvar="HOPSCOPE_EQUIVALENCE_RESAMPLES",
            help="Bootstrap resamples.",
            rich_help_panel=MEASURING,
        ),
    ] = 2000,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure the agreement of an entailment with human judgements of answers.

    Prints F1 and accuracy in percent for each system in FILE, with 95 % intervals.
    """
    from hopscope.lab import answer_metric
    from hopscope.lab.dataset import ordering
    from hopscope.lab.equivalence.data import MEAN, judgements
    from hopscope.lab.equivalence.evaluate import ByMetric, LexicalMatch, evaluate
    from hopscope.runtime.errors import UsageError

    judge: Judge
    if metric is not None:
        if rule is not Rule.entails:
            raise UsageError(f"--rule {rule.value} needs an entailment, and --metric is none")
        by = None if entailment == LEXICAL else entailment
        judge = ByMetric(
            answer_metric.answer_metric(metric, reader=reader, entailment=by or "lexical")
        )
    elif entailment == LEXICAL:
        if rule is not Rule.entails:
            raise UsageError(
                f"--rule {rule.value} needs an entailment, and lexical match is none: give "
                "--entailment lexical-rules or another, or leave out --rule"
            )
        judge = LexicalMatch()
    else:
        judge = parts.entailment(LEXICAL if entailment == LEXICAL_RULES else entailment)
    left_out: list[LeftOut] = []
    judged, taken = ordering.sample(
        judgements(file, part.value, tell=left_out.append),
        limit,
        order.value,
        stratum=lambda _: (),
        key=lambda one: one.question,
        named=lambda one: one.record,
    )
    if left_out:
        render.note(_left_out(left_out))
    if part is not Part.held_out and entailment == "equivalence" and metric is None:
        render.note(
            "the embedded model was trained on half of EVOUNA's TriviaQA: if FILE is that set, "
            "use --part held-out"
        )
    sample.tell(taken)
    render.progress(f"judging the answers to {len(judged)} questions")
    found = evaluate(
        judged, judge, rule=rule.value, threshold=threshold, resamples=resamples, seed=seed
    )
    render.progress("")
    shown = found.mistakes[:mistakes]
    if json:
        render.print_json(
            _as_json(
                found,
                judge,
                shown,
                left_out,
                taken,
                rule=rule,
                threshold=threshold,
                resamples=resamples,
                seed=seed,
            )
        )
        return
    rows = [(system, agreement) for system, agreement in found.systems.items()]
    for name, agreement in [*rows, (MEAN, found.mean)]:
        render.say(_line(name, agreement))
    if bins:
        render.say("\n".join(["", *_bins(found.reliability)]))
    for mistake in shown:
        render.say("\n".join(["", *_told(mistake, judge)]))


def _left_out(records: Sequence["LeftOut"]) -> str:
    named = [
        f"record {each.record} ({', '.join(map(render.plain, each.fields))})"
        for each in records[:LEFT_OUT_NAMED]
    ]
    more = [f"{len(records) - len(named)} more"] if len(records) > len(named) else []
    count = f"{len(records)} record{'s' if len(records) > 1 else ''}"
    return f"{count} left out because of null fields: {', '.join([*named, *more])}"


def _line(name: str, found: "HumanAgreement") -> str:
    f1, right = found.f1_interval, found.accuracy_interval
    return (
        f"{render.plain(name):12s} F1 {found.f1:6.2f} [{f1.low:6.2f}, {f1.high:6.2f}]   "
        f"accuracy {found.accuracy:6.2f} [{right.low:6.2f}, {right.high:6.2f}]   n {found.n}"
    )


def _bins(found: "Reliability") -> list[str]:
    lines = ["P(right)       answers   mean   right  [95 % interval]"]
    for each in found.bins:
        low, high = each.interval
        lines.append(
            f"{each.low:.2f} to {each.high:.2f}   {each.n:7d}   {each.mean:.3f}  {each.right:.3f}  "
            f"[{low:.3f}, {high:.3f}]"
        )
    return [*lines, f"expected calibration error {found.error:.4f}"]


def _told(mistake: "Mistake", judge: "Judge") -> list[str]:
    asked = mistake.answered
    verdict = "right" if mistake.right else "wrong"
    lines = [
        f"{render.plain(mistake.system)}: people say {verdict}, P(right) {mistake.probability:.3f}",
        f"  question  {render.plain(asked.question)}",
        f"  golds     {render.plain(' / '.join(asked.golds))[:200]}",
        f"  answer    {render.plain(asked.answer)[:200]}",
    ]
    if reasons := _reasons(mistake, judge):
        told = ", ".join(f"{r['feature']} {r['contribution']:+.2f}" for r in reasons)
        lines.append(f"  because   {told}")
    return lines


def _reasons(mistake: "Mistake", judge: "Judge") -> list[dict[str, object]]:
    """The five features with the largest contributions, if the model reports them."""
    from hopscope.tracing.entailments.equivalence import Equivalence

    if not isinstance(judge, Equivalence):
        return []
    return [reason._asdict() for reason in judge.explain(mistake.answered).reasons[:5]]


def _as_json(
    found: "Evaluation",
    judge: "Judge",
    shown: "list[Mistake]",
    left_out: Sequence["LeftOut"],
    taken: "Sample | None",
    *,
    rule: Rule,
    threshold: float,
    resamples: int,
    seed: int,
) -> dict[str, object]:
    """The results by system, and their mean. Common settings are repeated in each, so that every
    value has the same form."""
    from hopscope.lab.equivalence.data import MEAN

    calibration = {
        "expected_error": found.reliability.error,
        "bins": [each._asdict() for each in found.reliability.bins],
    }
    wrong: dict[str, list[object]] = {system: [] for system in found.systems}
    for mistake in shown:
        told = {
            **mistake.answered._asdict(),
            "right": mistake.right,
            "probability": mistake.probability,
            "reasons": _reasons(mistake, judge),
        }
        wrong[mistake.system].append(told)
    return {
        name: {
            **agreement._asdict(),
            "interval": f"95 % percentile bootstrap over questions, {resamples} resamples",
            "seed": seed,
            "rule": rule.value,
            "threshold": threshold,
            "sample": taken and taken.model_dump(mode="json"),
            "left_out": [each.model_dump(mode="json") for each in left_out],
            **({"mistakes": wrong[name]} if name in wrong and shown else {}),
            **({"calibration": calibration} if name == MEAN else {}),
        }
        for name, agreement in [*found.systems.items(), (MEAN, found.mean)]
    }
