"""The option `--metric` of commands that judge answers by one metric."""

from typing import Annotated

from hopscope.cli.options import code_options
from hopscope.cli.options.help import MEASURING

MetricSpec = Annotated[
    str,
    code_options.component(
        "--metric",
        "-m",
        metavar="METRIC",
        help="The answer metric of `hopscope list metrics`. The first option follows a colon, as "
        "in f1:spaced or bertscore:FOLDER,layer=9.",
        envvar="HOPSCOPE_METRIC",
        rich_help_panel=MEASURING,
    ),
]
