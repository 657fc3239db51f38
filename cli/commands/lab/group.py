"""The suites of `hopscope lab`, and the group of its commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.commands.lab.equivalence import equivalence
from hopscope.cli.options import code_options, measuring
from hopscope.cli.options.configured import ArgumentGroup
from hopscope.cli.options.help import MEASURING, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hopscope.lab.running_suites import Suites

app = typer.Typer(cls=ArgumentGroup)


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
            "in FILE, and with hopland:dev the embedded world.",
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


app.command("equivalence")(equivalence)
