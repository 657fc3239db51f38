"""Parsing and help of commands. Help is readable at 80 columns: options in groups, then an example.

Typer's own tables have five columns, which breaks names and values in the middle.
"""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

WIDEST = 100
"""The longest line in characters, even on a wider terminal."""
NAMES = 26
"""Widest names and values in characters; after wider ones, the description begins a new line."""

SELECTION = "Selection"
MODELS = "Workflow and models"
MEASURING = "Measuring"
BUDGET = "Budget"
PROCESSING = "Processing"
CORPUS = "Corpus format"
PLACES = "Files and storage"
OTHERS = "Options"
ORDER = (
    "Arguments",
    SELECTION,
    MODELS,
    MEASURING,
    BUDGET,
    PROCESSING,
    CORPUS,
    PLACES,
    OTHERS,
)
"""Groups of options; an option names its own by `rich_help_panel`."""

VALUES = {
    r"<int range>|<int>|<list\[int\]>": "N",
    r"<float range>|<float>": "X",
    r"<path>": "PATH",
    r"<str>": "TEXT",
}
"""Value names by type, for options that have none of their own."""

EXAMPLES = {
    "": 'hopscope run "Where was Rosis Wallo born?" --gold Zana',
    "demo": "hopscope demo 5 --samples 20",
    "run": 'hopscope run "Where was Rosis Wallo born?" --gold Zana -w naive',
    "resume": "hopscope resume --checkpoint state.db 3f2a",
    "eval": "hopscope eval hopland:dev -w naive -w ircot --limit 20 --name first",
    "import": "hopscope import rollouts.jsonl --name agent",
    "show": "hopscope show 3f2a --json",
    "credit": "hopscope credit first --counterfactual random",
    "ls": "hopscope ls --limit 5 -w ircot",
    "score": "hopscope score first -m f1 -m contains",
    "errors": "hopscope errors first --by workflow",
    "erag": "hopscope erag first --cutoff 3",
    "compare": "hopscope compare first -t credit_by_step --by hops",
    "gate": "hopscope gate second --baseline first --metric f1 --drop .02",
    "figure": "hopscope figure workflows first --out workflows.svg",
    "report": "hopscope report first --out report.html",
    "view": "hopscope view --port 8000",
    "serve": "hopscope serve search hopland",
    "serve search": "hopscope serve search my-index --port 8001",
    "list": "hopscope list workflows",
    "new": "hopscope new workflow my_workflow",
    "config": "hopscope config show run",
    "config show": "hopscope config show run",
    "doctor": "hopscope doctor",
    "index": "hopscope index build corpus.jsonl --out my-index",
    "index build": "hopscope index build corpus.jsonl --out my-index",
    "index search": 'hopscope index search my-index "a film" -k 5',
    "index info": "hopscope index info my-index --verify",
    "budget": "hopscope budget explain last",
    "budget explain": "hopscope budget explain last",
    "budget fit": "hopscope budget fit --from first --budget tokens=800 --out policy.json",
    "budget frontier": "hopscope budget frontier first -w ircot --plot frontier.svg",
    "budget check": "hopscope budget check route:route.json --outcomes others.jsonl",
    "budget allocate": "hopscope budget allocate asked.jsonl --policy policy.json --total 20000",
    "db": "hopscope db check",
    "db upgrade": "hopscope db upgrade --db runs.db",
    "db check": "hopscope db check",
    "db vacuum": "hopscope db vacuum",
    "db export": "hopscope db export runs.jsonl last",
    "export": "hopscope export rows first --out tables",
    "export settings": "hopscope export settings first",
    "export rows": "hopscope export rows first --out tables --form csv",
    "export trec": "hopscope export trec first --out trec",
    "export inspect": "hopscope export inspect first --out logs",
    "export flashrag": "hopscope export flashrag first --out flashrag",
    "export ragas": "hopscope export ragas first --out ragas",
    "export preferences": "hopscope export preferences first --out rewriter -k 10",
    "push": "hopscope push phoenix first --to http://127.0.0.1:6006 --dry-run",
    "pull": "hopscope pull phoenix first --to http://127.0.0.1:6006",
    "labels": "hopscope labels first",
    "rewards": "hopscope rewards first --rule shapley --format prime-rl --out rewards.jsonl",
    "eor": "hopscope eor fit hopland --out weights.json --limit 50",
    "eor fit": "hopscope eor fit hopland --out weights.json --limit 50",
    "lab": "hopscope lab seper --limit 20",
    "lab equivalence": "hopscope lab equivalence judged.jsonl --mistakes 5",
}
"""By the name of the command or group of commands."""


class Command(TyperCommand):
    """A command with its options in groups."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a second workflow where one is allowed: only the last would count."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        workflows = [each for each in given if each.name == "workflow"]
        if len(workflows) > 1 and not workflows[0].multiple:
            ctx.fail(
                f"{workflows[0].opts[0]} is given {len(workflows)} times, and this command takes "
                "one workflow; compare several with `hopscope eval DATA -w NAME -w NAME`"
            )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_plain(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _options(self, ctx, formatter)
        _example(ctx, formatter)


class Group(TyperGroup):
    """A group of commands, with the first sentence of each."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _options(self, ctx, formatter)
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(each.help)) for name, each in commands if each])
        _example(ctx, formatter)


def _options(command: Any, context: Any, formatter: Any) -> None:
    formatter.width = min(formatter.width, WIDEST)
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            own = "Arguments" if parameter.param_type_name == "argument" else OTHERS
            group = getattr(parameter, "rich_help_panel", None) or own
            groups.setdefault(group, []).append((_named(record[0]), record[1]))
    for group in sorted(groups, key=ORDER.index):
        with formatter.section(group):
            formatter.write_dl(groups[group], col_max=NAMES)


def _example(context: Any, formatter: Any) -> None:
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    if example := EXAMPLES.get(" ".join(words)):
        with formatter.section("Example"):
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _sentence(text: str | None) -> str:
    """The first sentence, without its period."""
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return re.split(r"\.(?: |$)", paragraph)[0]


def _plain(piece: str) -> str:
    """An argument of the usage line, without braces."""
    return piece.replace("{", "").replace("}", "")


def _named(names: str) -> str:
    if not names.startswith("-"):
        return names.partition(" <")[0]  # an argument's description names its values
    for pattern, value in VALUES.items():
        names = re.sub(pattern, value, names)
    return names
