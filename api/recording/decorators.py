"""Functions whose calls are searches or replies of the recording around them."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, overload

from hopscope.api.recording import attributes, places, replies
from hopscope.api.recording.keeping import recorded, tell
from hopscope.api.recording.places import Place
from hopscope.runtime.adapters.passages import ranking
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
QUERIES = ("query", "question", "q", "text")
"""Names of the parameter that takes the query; without one, the first takes it."""
PROMPTS = ("prompt", "messages", "question", "input")
"""Likewise of a model's prompt."""


@overload
def retrieval(function: F, /) -> F: ...


@overload
def retrieval(
    *,
    query: str | None = None,
    passages: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Callable[[F], F]: ...


def retrieval(
    function: Any = None,
    /,
    *,
    query: str | None = None,
    passages: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Each call of the function is a search of the recording around it; outside any recording the
    function is just called.

        @hopscope.retrieval
        def search(query: str, k: int = 5) -> list[dict[str, str]]: ...

    The function may be asynchronous. It returns passages as texts, dicts or documents (see
    `runtime.adapters.retriever.of_callable`). A search within another one is part of it.

    Args:
        query: name of the parameter that takes the query; by default `query`, `question`, `q`,
            `text` or the first.
        passages: takes the passages out of what the function returns.
        name: of the step; by default the function's.

    Raises:
        UsageError: the function yields its passages one by one, or has no such parameter.
    """

    def decorate(function: F) -> F:
        called = name or str(getattr(function, "__name__", type(function).__name__))
        asked = _argument(function, query, QUERIES)

        def begun(args: Any, options: Any) -> dict[str, Any]:
            return recorded(
                called,
                lambda: attributes.search(replies.text(asked(args, options))),
                attributes.search(""),
            )

        def ended(result: Any) -> dict[str, Any]:
            try:
                if isinstance(result, Iterator):
                    raise MalformedRecordError("an iterator can be read once: return a list")
                kept = result if passages is None else passages(result)
                return attributes.found(ranking(kept, source=called))
            except Exception as problem:  # whatever the user's function raises
                tell(f"{called} did not return passages: {problem}")
                return attributes.found([])

        return _watched(function, called, begun, ended)

    return decorate if function is None else decorate(function)


@overload
def generation(function: F, /) -> F: ...


@overload
def generation(*, prompt: str | None = None, name: str | None = None) -> Callable[[F], F]: ...


def generation(
    function: Any = None, /, *, prompt: str | None = None, name: str | None = None
) -> Any:
    """Each call of the function is a reply of a model in the recording around it.

    The function may be asynchronous. It returns a text, or what a client of OpenAI, Anthropic or
    LangChain returns, which tells its tokens and its model, too.

    Args:
        prompt: name of the parameter that takes the prompt, a text or messages; by default
            `prompt`, `messages`, `question`, `input` or the first.
        name: of the step; by default the function's.

    Raises:
        UsageError: as `retrieval`.
    """

    def decorate(function: F) -> F:
        called = name or str(getattr(function, "__name__", type(function).__name__))
        asked = _argument(function, prompt, PROMPTS)

        def begun(args: Any, options: Any) -> dict[str, Any]:
            return recorded(
                called,
                lambda: attributes.asked(replies.prompt(asked(args, options))),
                attributes.asked(""),
            )

        def ended(result: Any) -> dict[str, Any]:
            return recorded(
                called,
                lambda: attributes.replied(replies.read(result)),
                attributes.replied(replies.Reply("")),
            )

        return _watched(function, called, begun, ended)

    return decorate if function is None else decorate(function)


def _watched(
    function: F,
    name: str,
    begun: Callable[[Any, Any], dict[str, Any]],
    ended: Callable[[Any], dict[str, Any]],
) -> F:
    """The function, each of whose calls is a span of the recording around it."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{name} yields what it finds: give a function that returns it")

    async def awaited(result: Awaitable[Any], place: Place) -> Any:
        with _ending(place), places.within(place):
            found = await result
            place.span.attributes.update(ended(found))
        return found

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        around = places.here()
        if around is None:
            return function(*args, **options)
        span = around.tape.begin(name, begun(args, options), around.span)
        place = Place(around.tape, span)
        with _ending(place) as going_on, places.within(place):
            result = function(*args, **options)
            if inspect.isawaitable(result):
                going_on.append(place)
                return awaited(result, place)
            span.attributes.update(ended(result))
        return result

    @wraps(function)
    async def call_async(*args: Any, **options: Any) -> Any:
        return await call(*args, **options)

    watched: Any = call_async if inspect.iscoroutinefunction(function) else call
    return watched  # type: ignore[no-any-return]  # has the function's signature


@contextmanager
def _ending(place: Place) -> Iterator[list[Place]]:
    """Ends the span, by an error if one is raised; unless it is put into the list, because it goes
    on."""
    going_on: list[Place] = []
    try:
        yield going_on
    except BaseException as error:
        place.tape.end(place.span, error=error)
        raise
    if not going_on:
        place.tape.end(place.span)


def _argument(
    function: Callable[..., Any], name: str | None, usual: tuple[str, ...]
) -> Callable[[Any, Any], Any]:
    """Finds the value of a parameter in a call.

    Raises:
        UsageError: there is no such parameter.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters if each not in ("self", "cls")]
    if name is not None and name not in own:
        raise UsageError(f"{function!r} has no parameter {name!r}: choose from {', '.join(own)}")
    if not own:
        raise UsageError(f"{function!r} takes nothing that it could be asked")
    chosen = name or next((each for each in usual if each in own), own[0])

    def find(args: Any, options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError:  # the call itself will tell
            return ""
        bound.apply_defaults()
        return bound.arguments.get(chosen, "")

    return find
