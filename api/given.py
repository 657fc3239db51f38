"""The parts of a session as users give them: a name, or the part itself."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from hopscope.runtime import code_files
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    from hopscope.runtime.execution.run import Workflow
    from hopscope.runtime.ports import Entailment, Policy, Reader, Retriever
    from hopscope.runtime.types import Question, Run
    from hopscope.store.store import Store


Part = TypeVar("Part")
Choice = TypeVar("Choice", bound=StrEnum)


class Invocable(Protocol):
    """A retriever of LangChain, or another object with `invoke(query)`."""

    @property
    def invoke(self) -> Callable[..., Any]: ...


ReaderPart: TypeAlias = "str | Reader | tuple[Any, Any]"
"""A reader's name, a reader, or a model of transformers with its tokenizer."""
RetrieverPart: TypeAlias = "str | Retriever | Callable[..., Any] | Invocable"
"""A retriever's name, a retriever, or a function `(query, k) -> passages`."""
EntailmentPart: TypeAlias = "str | Entailment"
PolicyPart: TypeAlias = "str | Policy"
WorkflowPart: TypeAlias = (
    "str | Workflow | StateGraph[Any, Any, Any, Any] | CompiledStateGraph[Any, Any, Any, Any]"
)
"""A workflow's name, a workflow, or a graph of LangGraph."""


def named(part: Part) -> Part:
    """Run the Python files that a text names, and put the names of their components in their
    place; return other parts unchanged.

    Raises:
        UsageError: such a file cannot be run.
    """
    return cast(Part, code_files.named(part)) if isinstance(part, str) else part


def reader(part: ReaderPart) -> "Reader":
    """
    Raises:
        UsageError: there is no such reader, or the object is not one.
        ReaderError: its server cannot be reached.
    """
    if isinstance(part, str):
        from hopscope.api import parts

        return parts.reader(part)
    if isinstance(part, tuple):
        from hopscope.runtime.adapters.reader import of_model

        if len(part) != 2:
            raise UsageError(f"reader: give a pair (model, tokenizer), not {len(part)} objects")
        return of_model(*part)
    _has(part, "reader", ("generate", "score"), "a name, or a pair (model, tokenizer)")
    return part


def retriever(part: RetrieverPart, reader: "Reader", *, seed: int) -> "Retriever":
    """`reader` and `seed` are for the stages that a name may hold, such as reranking.

    Raises:
        UsageError: there is no such retriever, or the object is not one.
        RetrieverError: an index is damaged.
    """
    if isinstance(part, str):
        from hopscope.api import retrieval

        return retrieval.retriever(retrieval.parse(part), reader, seed=seed)
    if callable(getattr(part, "search", None)) and isinstance(getattr(part, "name", None), str):
        found: Retriever = part  # type: ignore[assignment]  # has the methods of one
        return found
    from hopscope.runtime.adapters.retriever import of_callable

    return of_callable(part)


def entailment(part: EntailmentPart) -> "Entailment":
    """
    Raises:
        UsageError: there is no such entailment, or the object is not one.
    """
    if isinstance(part, str):
        from hopscope.api import parts

        return parts.entailment(part)
    _has(part, "entailment", ("classify",), "a name")
    return part


def policy(
    part: PolicyPart, *, workflow: str | None, reader_name: str, prompts: str | None = None
) -> "Policy | None":
    """None for `native`, which needs none.

    Raises:
        UsageError: there is no such policy, or it does not fit the workflow or the reader.
    """
    if isinstance(part, str):
        from hopscope.api import spending

        return spending.policy(
            Spec.parse(part), workflow=workflow, reader_name=reader_name, prompts=prompts
        )
    _has(part, "policy", ("decide",), "a name", named=False)
    return part


def workflow(part: WorkflowPart, options: Mapping[str, str]) -> "Workflow":
    """
    Raises:
        UsageError: there is no such workflow or option, or the object is not a workflow.
    """
    if isinstance(part, str):
        from hopscope.api import parts

        return parts.workflow(part, dict(options))
    from hopscope.api import parts
    from hopscope.runtime.execution.run import Workflow

    prompts = options.get(parts.PROMPTS)
    if options := {key: text for key, text in options.items() if key != parts.PROMPTS}:
        raise UsageError(
            f"the options {', '.join(options)} do not apply to a workflow that is already built: "
            "build it with them"
        )
    if not isinstance(part, Workflow):
        from hopscope.runtime.adapters.workflow import of_graph

        part = of_graph(part)
    return part if prompts is None else parts.prompted(part, prompts)


def workflow_and_options(workflow: WorkflowPart) -> tuple[WorkflowPart, dict[str, str]]:
    """A workflow and the options that stand with its name, as in `ircot:k=3`.

    Raises:
        UsageError: the name is malformed, or holds a policy.
    """
    if not isinstance(workflow, str):
        return workflow, {}
    spec = Spec.parse(workflow, argument=False)
    own = dict(spec.options)
    if "policy" in own:
        raise UsageError(f"workflow {workflow}: give the policy to the session, policy=...")
    return spec.name, own


def question(question: object, gold: str | Iterable[str] | None) -> "Question":
    """The question, with right answers if any are given.

    Raises:
        UsageError: it is neither a text nor a `Question`, or the answers are none.
    """
    from hopscope.runtime.types import Question

    if not isinstance(question, str | Question):
        raise UsageError(f"question: give a text or a hopscope.Question, not {question!r}")
    asked = Question(text=question) if isinstance(question, str) else question
    return asked if gold is None else asked.model_copy(update={"answers": golds(gold)})


def golds(gold: str | Iterable[str] | None) -> tuple[str, ...]:
    """Right answers, each once.

    Raises:
        UsageError: they are no texts.
    """
    from hopscope.runtime.types import Question

    if gold is None:
        return ()
    answers: object = gold
    if not isinstance(answers, Iterable) or not all(isinstance(each, str) for each in answers):
        raise UsageError(f"gold: give the right answer, or a list of right answers, not {gold!r}")
    return Question(text="", answers=(gold,) if isinstance(gold, str) else tuple(gold)).answers


def run(run: object, store: "Store") -> "Run":
    """The record of a run, or of the stored run of this id.

    Raises:
        UsageError: there is no such run, or it is none.
    """
    from hopscope.api import stored
    from hopscope.api.measured_run import MeasuredRun
    from hopscope.runtime.types import Run

    if isinstance(run, str):
        return stored.find(store, run)
    if not isinstance(run, Run | MeasuredRun):
        raise UsageError(f"run: give a run or the id of a stored one, not {run!r}")
    return run.record if isinstance(run, MeasuredRun) else run


def names(named: object) -> tuple[str, ...]:
    """The names in a sequence; a text is one name.

    Raises:
        UsageError: it is neither a text nor a sequence of texts.
    """
    listed: object = [named] if isinstance(named, str) else named
    if not isinstance(listed, Iterable) or not all(isinstance(each, str) for each in listed):
        raise UsageError(f"give a list of names, not {named!r}")
    return tuple(listed)


def choice(kind: type[Choice], text: str, name: str) -> Choice:
    """The choice that a text names.

    Raises:
        UsageError: the text is not one of them.
    """
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{name}={text!r}: choose from {', '.join(kind)}") from None


def texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as text, as on the command line: numbers, lists and objects as JSON.

    Raises:
        UsageError: they are no mapping of names.
    """
    import json
    from pathlib import Path

    if not isinstance(options, Mapping | None):
        raise UsageError(f'options: give names with values, as in {{"k": 5}}, not {options!r}')
    return {
        key: str(named(value)) if isinstance(value, str | Path) else json.dumps(value)
        for key, value in (options or {}).items()
    }


def _has(
    part: object, kind: str, methods: tuple[str, ...], instead: str, *, named: bool = True
) -> None:
    """
    Raises:
        UsageError: it lacks a method of the port, or a name.
    """
    missing = [f"{method}()" for method in methods if not callable(getattr(part, method, None))]
    if named and not isinstance(getattr(part, "name", None), str):
        missing.append("name")
    if missing:
        raise UsageError(
            f"{kind}: {type(part).__name__} has no {' and no '.join(missing)}; give {instead}, or "
            f"an object with the methods of hopscope.runtime.ports.{kind.capitalize()}"
        )
