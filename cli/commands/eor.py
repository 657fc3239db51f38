"""`hopscope eor`: learn the weights of EoR's retrievers."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.api import parts, retrieval
from hopscope.api.views import render
from hopscope.cli.options import code_options, sample
from hopscope.cli.options.help import MEASURING, PLACES, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import (
    CorpusSpec,
    EntailmentSpec,
    Options,
    ReaderSpec,
    ThinkingSpec,
)
from hopscope.cli.options.sample import Order
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.lab.answer_metric import answer_metric
from hopscope.runtime.texts.counting import counted

app = typer.Typer(help="Learn the weights of EoR's ensemble of retrievers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Learn the weights of EoR's ensemble of retrievers."""


@app.command("fit")
def fit(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            envvar="HOPSCOPE_EOR_DATASET",
            help="JSON lines of {question, golden_answers}, or hopland for its dev questions.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            envvar="HOPSCOPE_EOR_OUT",
            help="The weights file to write.",
            rich_help_panel=PLACES,
        ),
    ],
    option: Options = None,
    corpus: CorpusSpec = parts.HOPLAND,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="HOPSCOPE_EOR_LIMIT",
            help="Use only the first N questions by --order.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    order: Annotated[
        Order,
        typer.Option(
            "--order",
            help="stratified: random, with each kind and number of hops in proportion where "
            "known, the same for the same questions. file: the order of the file.",
            envvar="HOPSCOPE_EOR_ORDER",
            rich_help_panel=SELECTION,
        ),
    ] = Order.stratified,
    metric: Annotated[
        list[str] | None,
        code_options.component(
            "--metric",
            "-m",
            metavar="METRIC",
            envvar="HOPSCOPE_EOR_METRIC",
            help="The answer metric to maximise (`hopscope list metrics`), by default "
            "exact_match; repeat for the mean of several.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    metric_entailment: Annotated[
        str | None,
        code_options.component(
            "--metric-entailment",
            metavar="NAME",
            envvar="HOPSCOPE_EOR_METRIC_ENTAILMENT",
            help="The entailment of --metric equivalence, as bem:MODEL; by default that of "
            "--entailment.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    evaluations: Annotated[
        int,
        typer.Option(
            min=1, envvar="HOPSCOPE_EOR_EVALUATIONS", help="Weights to try over all restarts."
        ),
    ] = 2000,
    restarts: Annotated[
        int, typer.Option(min=1, envvar="HOPSCOPE_EOR_RESTARTS", help="Restarts of the search.")
    ] = 5,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Answer questions with each retriever of the pool and learn the weights of their votes.

    Use the file with `hopscope run -w eor -o weights=FILE` and the same pool. Questions that fail
    are left out; after Ctrl-C the weights are learned from those answered so far.
    """
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab.eor import answering, fitting
    from hopscope.lab.export.sheets import whole
    from hopscope.runtime import specs
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.execution.state import Deps
    from hopscope.workflows.eor import weights_file

    options = specs.pairs(option or [])
    if "weights" in options:
        raise UsageError("the weights are what is learned: leave -o weights out")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder")
    check_free([out], overwrite=overwrite)
    built = parts.workflow("eor", options)
    judges = [
        answer_metric(name, reader=reader, entailment=metric_entailment or entailment)
        for name in metric or ["exact_match"]
    ]
    chosen, taken = answering.questions(dataset, limit, order.value)
    sample.tell(taken)
    render.progress("loading the corpus and the reader")
    model = parts.reader(reader)
    deps = Deps(
        reader=model,
        retriever=retrieval.retriever(retrieval.parse(corpus), model, seed=seed),
        entailment=parts.entailment(entailment),
        seed=seed,
        capture_content=False,
    )
    answered = answering.answer(built, chosen, deps)
    runs = answered.runs
    code = 130 if answered.interrupted else int(answered.failed > 0)
    retrieval.tell_cut(deps.retriever)
    if code:
        render.note(
            f"answered {len(runs)} of {counted(len(chosen), 'question')}; learning from these"
        )
    if code and not runs:
        raise typer.Exit(code)
    render.progress("learning the weights")
    source = f"{dataset}, {reader}, {corpus}"
    weights = fitting.fit(
        runs,
        fitting.rule_of(built.options),
        metrics=judges,
        evaluations=evaluations,
        restarts=restarts,
        seed=seed,
        source=source,
        sample=taken,
    )
    with whole(out) as unfinished:
        weights_file.save(unfinished, weights)
    render.progress("")
    for retriever, weight in zip(weights.pool, weights.retrievers, strict=True):
        render.say(f"{weight:.3f}  {retriever}")
    for similarity, weight in weights.similarities.items():
        render.say(f"{weight:.3f}  {similarity} (similarity)")
    told = weights.learned
    name = "right" if not metric else " + ".join(judge.name for judge in judges)
    render.say(
        f"{name}: {told['accuracy']:.3f} over {told['questions']} questions; best retriever alone "
        f"{told['best_alone']:.3f}, any of the pool {told['oracle']:.3f}",
        stderr=True,
    )
    raise typer.Exit(code)
