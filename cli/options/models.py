"""The options that name workflows, models and corpora."""

from typing import Annotated

import typer

from hopscope.cli.options.code_options import component
from hopscope.cli.options.help import MODELS

WorkflowName = Annotated[
    str,
    component(
        "--workflow",
        "-w",
        metavar="NAME",
        help="The workflow, with options as in ircot:k=3; see `hopscope list workflows`.",
        envvar="HOPSCOPE_WORKFLOW",
    ),
]
CorpusSpec = Annotated[
    str,
    component(
        "--corpus",
        "--retriever",
        metavar="CORPUS",
        help="The corpus to search: hopland (embedded), the folder of an index, KIND:WHERE, or an "
        "expression such as rrf(bm25:DIR,searxng:URL)@RR@5 (docs/workflows.md).",
        envvar="HOPSCOPE_CORPUS",
    ),
]
ReaderSpec = Annotated[
    str,
    component(
        "--reader",
        metavar="READER",
        help="The reader: tiny (embedded, knows Hopland only), hf:MODEL (a folder or a hub id), "
        "vllm:MODEL, fid:MODEL (T5 with Fusion-in-Decoder), or openai:URL#MODEL for a server; "
        "options follow after commas "
        "(docs/readers.md).",
        envvar="HOPSCOPE_READER",
    ),
]
ThinkingSpec = Annotated[
    str | None,
    typer.Option(
        "--thinking",
        metavar="MODE",
        help="Thinking of a reasoning model before it answers: on, off, auto (the default of its "
        "chat template), or the maximum number of tokens.",
        envvar="HOPSCOPE_THINKING",
        rich_help_panel=MODELS,
    ),
]
EntailmentSpec = Annotated[
    str,
    component(
        "--entailment",
        metavar="NAME",
        help="The judge of equal meaning: lexical (short answers), equivalence (embedded, general "
        "text), nli:MODEL, bem:MODEL or judge:READER.",
        envvar="HOPSCOPE_ENTAILMENT",
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "-k",
        min=1,
        help="Passages per retrieval; short for -o k=N.",
        envvar="HOPSCOPE_K",
        rich_help_panel=MODELS,
    ),
]
Options = Annotated[
    list[str] | None,
    component(
        "-o",
        metavar="KEY=VALUE",
        help="An option of the workflow, or METER.KEY=VALUE of a meter, as in "
        "seper.weight=uniform; repeatable. [env var: HOPSCOPE_OPTIONS, one a line]",
    ),
]
