"""The option `--metric` of commands that judge answers by one metric."""

from typing import Annotated

import typer

from hopscope.cli.options import code_options
from hopscope.cli.options.help import MEASURING

MetricSpec = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        callback=code_options.of_component,
        help="The answer metric of `hopscope list metrics`. The first option follows a colon, as "
        "in f1:spaced or bertscore:FOLDER,layer=9.",
        envvar="HOPSCOPE_METRIC",
        rich_help_panel=MEASURING,
    ),
]
