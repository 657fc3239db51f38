"""`hopscope lab equivalence`: an entailment beside human judgements of answers."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.commands.lab import equivalence_report
from hopscope.cli.options import code_options, sample
from hopscope.cli.options.help import MEASURING, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import ReaderSpec
from hopscope.cli.options.places import Json
from hopscope.cli.options.sample import Order
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.lab.equivalence.data import LeftOut
    from hopscope.lab.equivalence.evaluate import Judge

LEXICAL = "lexical"
"""Here the papers' lexical match, which is a metric and no entailment."""
LEXICAL_RULES = "lexical-rules"
"""Here the entailment that is `lexical` everywhere else."""


class Part(StrEnum):
    all = "all"
    train = "train"
    held_out = "held-out"


class Rule(StrEnum):
    entails = "entails"
    seper = "seper"
    seper_hard = "seper_hard"


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
        render.note(equivalence_report.left_out_note(left_out))
    if part is not Part.held_out and entailment == "equivalence" and metric is None:
        render.note(
            "the embedded model was trained on half of EVOUNA's TriviaQA: if FILE is that set, "
            "use --part held-out"
        )
    sample.tell(taken)
    render.progress(f"judging the answers to {counted(len(judged), 'question')}")
    found = evaluate(
        judged, judge, rule=rule.value, threshold=threshold, resamples=resamples, seed=seed
    )
    render.progress("")
    shown = found.mistakes[:mistakes]
    if json:
        render.print_json(
            equivalence_report.as_json(
                found,
                judge,
                shown,
                left_out,
                taken,
                rule=rule.value,
                threshold=threshold,
                resamples=resamples,
                seed=seed,
            )
        )
        return
    rows = [(system, agreement) for system, agreement in found.systems.items()]
    for name, agreement in [*rows, (MEAN, found.mean)]:
        render.say(equivalence_report.agreement_line(name, agreement))
    if bins:
        render.say("\n".join(["", *equivalence_report.bin_lines(found.reliability)]))
    for mistake in shown:
        render.say("\n".join(["", *equivalence_report.mistake_lines(mistake, judge)]))
