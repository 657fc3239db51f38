"""Finds the keys of a foreign graph's state that hold question, documents, query and answer.

A key that the user names must exist. Otherwise the usual names are tried; if they are ambiguous,
the graph is refused and the message tells which option to give. The options of each run record the
keys.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hopscope.runtime.errors import UsageError

AUTO = "auto"
"""The value of an option that tries the usual names."""
MESSAGES = "messages"
"""Key of a conversation, as LangGraph's `MessagesState` calls it."""
QUESTION = ("question", "query", "input")
DOCUMENTS = (
    "documents",
    "docs",
    "context",
    "contexts",
    "retrieved",
    "retrieved_documents",
    "retrieved_docs",
    "passages",
    "evidence",
)
QUERY = ("query", "search_query")
ANSWER = ("answer", "generation", "output", "response", "final_answer")


@dataclass(frozen=True)
class Keys:
    """The keys of one graph."""

    question: str
    """The key of the question; `messages`: as a person's message."""
    documents: str | None
    """The key of retrieved documents; `messages`: as messages of tools; None: there is none."""
    query: str | None
    """The key of the query; None: the key of the question."""
    answer: str
    """`messages`: the last message of the model."""

    def read(self, state: Collection[str]) -> list[str]:
        """The keys of the state whose values are read."""
        return [key for key in state if key in asdict(self).values()]


def keys(
    name: str,
    inputs: Collection[str],
    state: Collection[str],
    private: Collection[str],
    *,
    ports: bool,
    question: str,
    documents: str | None,
    query: str | None,
    answer: str,
) -> Keys:
    """
    Args:
        name: of the graph, for errors.
        inputs: the keys that the graph takes.
        state: the keys of its state.
        private: those and the keys that only some nodes are given.
        ports: whether the run's retriever records the retrieved passages if no key has them.

    Raises:
        UsageError: a key does not exist, or several fit.
    """
    asked = _one(name, "question", question, QUESTION, inputs, first=True)
    found = None
    if documents is not None:
        others = [key for key in DOCUMENTS if key != asked]
        found = _one(name, "documents", documents, others, state, optional=ports)
    searched = None
    if query is not None:
        others = [key for key in QUERY if key != asked]
        searched = _one(name, "query", query, others, private, first=True, optional=True)
    said = _one(name, "answer", answer, ANSWER, state)
    assert asked is not None
    assert said is not None
    return Keys(asked, found, searched, said)


def _one(
    name: str,
    purpose: str,
    given: str,
    usual: Sequence[str],
    there: Collection[str],
    *,
    first: bool = False,
    optional: bool = False,
) -> str | None:
    """The given key, else the only existing usual one, or the first; else the conversation."""
    if given != AUTO:
        if given not in there:
            raise UsageError(
                f"{name} has no {given!r} for {purpose}=: its keys are {_listed(there)}"
            )
        return given
    found = [key for key in usual if key in there]
    if len(found) == 1 or (found and first):
        return found[0]
    if found:
        raise UsageError(
            f"{name} has several keys that may hold the {purpose}, {_listed(found)}: name one, "
            f"{purpose}={found[0]!r}"
        )
    if optional and (purpose == "query" or MESSAGES not in there):
        return None
    if MESSAGES in there:
        return MESSAGES
    none = ", or documents=None for a graph that retrieves nothing" * (purpose == "documents")
    raise UsageError(
        f"{name} has none of the usual keys of the {purpose} ({', '.join(usual)}): name one of "
        f"{_listed(there)}, {purpose}=KEY{none}"
    )


def _listed(names: Collection[Any]) -> str:
    return ", ".join(map(repr, names)) or "(none)"
