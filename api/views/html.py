"""Terminal output as HTML for notebooks.

Invariant: texts of passages, models and files are escaped; there are no links and no scripts, and
nothing is fetched.
"""

from collections.abc import Callable
from io import StringIO

from rich.console import Console

from hopscope.api.views.render import PLAIN_WIDTH, harmless

FORMAT = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.3;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,'Courier New',monospace\">{code}</pre>"
)


def html(draw: Callable[[Console], None]) -> str:
    """The output of `draw` as HTML."""
    console = harmless(
        Console(
            record=True,
            file=StringIO(),
            width=PLAIN_WIDTH,
            color_system="truecolor",
            force_terminal=True,
            force_jupyter=False,
            legacy_windows=False,
            highlight=False,
            markup=False,
        )
    )
    draw(console)
    return console.export_html(inline_styles=True, code_format=FORMAT)
