"""`hopscope eor`: learn the weights that EoR's voter goes by."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import metrics, render, retrieval, wiring
from hopscope.cli.run import CorpusSpec, EntailmentSpec, Options, ReaderSpec, Seed, ThinkingSpec
from hopscope.cli.written import Overwrite, check_free

if TYPE_CHECKING:
    from hopscope.runtime.types import Question

app = typer.Typer(help="Learn the weights of EoR's voter.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Learn the weights of EoR's voter."""


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
        typer.Option("--out", envvar="HOPSCOPE_EOR_OUT", help="The weights file to write."),
    ],
    option: Options = None,
    corpus: CorpusSpec = wiring.HOPLAND,
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    limit: Annotated[
        int | None,
        typer.Option(min=1, envvar="HOPSCOPE_EOR_LIMIT", help="Take the first questions only."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME[:VALUE]",
            envvar="HOPSCOPE_EOR_METRIC",
            help="What the weights make as high as they can: a metric of answers (`hopscope list "
            "metrics`), by default exact_match; repeated, the mean of all.",
        ),
    ] = None,
    metric_entailment: Annotated[
        str | None,
        typer.Option(
            "--metric-entailment",
            metavar="NAME[:MODEL]",
            envvar="HOPSCOPE_EOR_METRIC_ENTAILMENT",
            help="What --metric equivalence asks, as bem:MODEL; by default what --entailment says.",
        ),
    ] = None,
    evaluations: Annotated[
        int,
        typer.Option(
            min=1, envvar="HOPSCOPE_EOR_EVALUATIONS", help="Weights to try, in all restarts."
        ),
    ] = 2000,
    restarts: Annotated[
        int, typer.Option(min=1, envvar="HOPSCOPE_EOR_RESTARTS", help="Starts of the search.")
    ] = 5,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Answer the questions with each retriever of the pool, and learn how to weigh their votes.

    Use the file with `hopscope run -w eor -o weights=FILE` and the same pool. Questions that cannot
    be answered are left out; after Ctrl-C the weights are learned from those answered so far.
    """
    reader = wiring.thoughtful(reader, thinking)
    from hopscope.lab import eor_fit
    from hopscope.lab.export.sheets import whole
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.run import run
    from hopscope.runtime.state import Deps
    from hopscope.workflows import _weights

    options = wiring.parse_pairs(option or [])
    if "weights" in options:
        raise UsageError("the weights are what is learned: leave -o weights out")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder")
    check_free([out], overwrite=overwrite)
    built = wiring.workflow("eor", options)
    judges = [
        metrics.metric(name, reader=reader, entailment=metric_entailment or entailment)
        for name in metric or ["exact_match"]
    ]
    asked = _questions(dataset)[:limit]
    render.progress("loading the corpus and the reader")
    model = wiring.reader(reader)
    deps = Deps(
        reader=model,
        retriever=retrieval.retriever(corpus, model, seed=seed),
        entailment=wiring.entailment(entailment),
        seed=seed,
        capture_content=False,
    )
    runs = []
    code = 0
    for number, question in enumerate(asked, start=1):
        render.progress(f"answering question {number} of {len(asked)}")
        result = run(built, question, deps)
        if result.status == "interrupted":
            code = 130
            break
        if result.error:
            code = 1
            render.note(
                f"left out question {render.plain(question.text)!r}: {result.error.message}"
            )
            continue
        runs.append(result)
    retrieval.tell_cut(deps.retriever)
    if code:
        render.note(f"answered {len(runs)} of {len(asked)} questions: learning from those")
    if code and not runs:
        raise typer.Exit(code)
    render.progress("learning the weights")
    source = f"{dataset}, {reader}, {corpus}"
    weights = eor_fit.fit(
        runs,
        eor_fit.rule_of(built.options),
        metrics=judges,
        evaluations=evaluations,
        restarts=restarts,
        seed=seed,
        source=source,
    )
    with whole(out) as unfinished:
        _weights.save(unfinished, weights)
    render.progress("")
    for retriever, weight in zip(weights.pool, weights.retrievers, strict=True):
        render.say(f"{weight:.3f}  {retriever}")
    for similarity, weight in weights.similarities.items():
        render.say(f"{weight:.3f}  {similarity} (similarity)")
    told = weights.learned
    name = "right" if not metric else " + ".join(judge.name for judge in judges)
    render.say(
        f"{name}: {told['accuracy']:.3f} of {told['questions']} questions; best retriever alone "
        f"{told['best_alone']:.3f}, any of the pool {told['oracle']:.3f}",
        stderr=True,
    )
    raise typer.Exit(code)


def _questions(dataset: str) -> "list[Question]":
    from hopscope.lab import eor_fit

    if dataset == wiring.HOPLAND:
        from hopscope.lab.hopland import data

        return [row.question for row in data.questions("dev")]
    return eor_fit.questions(Path(dataset))
