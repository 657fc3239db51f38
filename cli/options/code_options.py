"""Files of code on the command line: wherever a component is named, and by `--file`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from hopscope.cli.options.help import MODELS, PLACES


def of_component(context: typer.Context, value: Any) -> Any:
    """The callback of options that name components: runs the files they name."""
    if not value or context.resilient_parsing:
        return value
    return _named(value) if isinstance(value, str) else [_named(each) for each in value]


def component(
    *names: str,
    metavar: str,
    help: str,
    envvar: str | None = None,
    rich_help_panel: str | None = MODELS,
) -> Any:
    """An option that names a component, or the file of code that holds one."""
    return typer.Option(
        *names,
        metavar=metavar,
        callback=of_component,
        help=help,
        envvar=envvar,
        rich_help_panel=rich_help_panel,
    )


def lines(variable: str) -> list[str]:
    """The lines of an environment variable that names components."""
    from hopscope.api import parts

    return [_named(line) for line in parts.lines(variable)]


def told() -> str:
    """The options that give another command the files run by this one."""
    from hopscope.runtime import code_files

    return "".join(f" --file {code.path}" for code in code_files.known())


def _named(text: str) -> str:
    if ".py" not in text:
        return text
    from hopscope.runtime import code_files

    return code_files.named(text)


def _run(context: typer.Context, value: Iterable[Path] | None) -> Iterable[Path] | None:
    from hopscope.api import parts

    for path in value or parts.lines("HOPSCOPE_FILES"):
        if not context.resilient_parsing:
            from hopscope.runtime import code_files

            code_files.run(str(path))
    return value


Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="FILE.py",
        help="A Python file that the runs or the experiment used; it is run only if you name it "
        "here; repeatable. [env var: HOPSCOPE_FILES, one a line]",
        callback=_run,
        rich_help_panel=PLACES,
    ),
]
