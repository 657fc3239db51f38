"""The dialogues in which a model judges and ranks passages, one message for each passage.

Invariant: passages are numbered from [1], and only the last message states the task, so that all
calls on the same passages in the same order share the messages before it. The form is that of
RankGPT and ITEM, the words are ours.
"""

from collections.abc import Sequence
from typing import Literal

from hopscope.runtime.prompting.prompts import short_answer, system
from hopscope.runtime.texts.shortening import cut
from hopscope.runtime.types import Message, Passage, Prompt, Role

SHOWN_WORDS = 300  # of each passage

Criterion = Literal["relevance", "utility"]
Form = Literal["explicit", "implicit"]
"""The form of a reference: the answer itself, or the information that is necessary to give it."""

ASSISTANT = {
    "relevance": "You are an assistant that ranks passages by how relevant they are to a question.",
    "utility": "You are an assistant that judges whether passages are useful to answer a question.",
}
READY = "Yes, I am ready."
ANNOUNCE = (
    "I will give you {n} passages, one in each message, numbered from [1] to [{n}].{reference}\n"
    "Question: {question}"
)
REFERENCE_FOLLOWS = " After them I will give you a reference answer."
GO_ON = "Please give me the passages."
RECEIVED = "Received passage [{i}]."

REFERENCE = {
    "explicit": "Reference answer: {reference}\n",
    "implicit": "Information that may be necessary to answer: {reference}\n",
}
DOUBT = "The reference answer may be wrong.\n"  # only where one passage stands against it
UTILITY = (
    "A passage has utility if it is relevant to the question and also useful for giving a correct "
    "answer to it."
)
WRITE_FIRST = {
    None: "",
    "explicit": "First write your answer to the question in this form: Answer: ...\n",
    "implicit": (
        "First write the information that is necessary to answer the question, in this form: "
        "Necessary information: [...]\n"
    ),
}
SELECT = (
    "Question: {question}\n{reference}{utility}\n{first}"
    "Select all passages above that have utility. Write their numbers in this form: "
    "My selection:[[i],[j],...]."
)
JUDGE = (
    "Question: {question}\n{reference}{doubt}Passage: {passage}\n{utility}\n{first}"
    "Does the passage have utility? Write, in this form: My judgment: Yes, it has utility. Or: "
    "My judgment: No, it has none."
)
RANK = {
    "relevance": (
        "Question: {question}\n{reference}Rank the {n} passages above by their relevance to the "
        "question"
    ),
    "utility": (
        "Question: {question}\n{reference}{utility}\nRank the {n} passages above by their utility"
    ),
}
RANK_FORM = (
    ", the best first. Name each by its number, in this form: [i] > [j] > ... Write the ranking "
    "and nothing else."
)
INFORMATION_TASK = (
    "Do not answer the question. Write the information that is necessary to answer it, in this "
    "form: Necessary information: [...]"
)


def show(passage: Passage) -> str:
    text = cut(passage, SHOWN_WORDS).text
    return f"({passage.title}) {text}" if passage.title else text


def refer(reference: str, form: Form) -> str:
    """The line with a reference answer; empty without one."""
    return REFERENCE[form].format(reference=reference) if reference else ""


def talk(turns: Sequence[str], shown: Sequence[Passage]) -> Prompt:
    """Turns of user and assistant, the user's first and last."""
    roles: tuple[Role, Role] = ("user", "assistant")
    messages = (Message(role=roles[i % 2], content=turn) for i, turn in enumerate(turns))
    return Prompt(messages=tuple(messages), shown=tuple(passage.key for passage in shown))


def dialogue(
    question: str, passages: Sequence[Passage], task: str, criterion: Criterion, *, referred: bool
) -> Prompt:
    """The passages one by one, then the task."""
    announcement = ANNOUNCE.format(
        n=len(passages), question=question, reference=REFERENCE_FOLLOWS if referred else ""
    )
    turns = [ASSISTANT[criterion], READY, announcement, GO_ON]
    for i, passage in enumerate(passages, start=1):
        turns += [f"[{i}] {show(passage)}", RECEIVED.format(i=i)]
    return talk([*turns, task], passages)


def listwise(
    question: str, passages: Sequence[Passage], reference: str, form: Form, first: Form | None
) -> Prompt:
    """Ask for the list of useful passages; with `first`, for an answer before it."""
    task = SELECT.format(
        question=question,
        reference=refer(reference, form),
        utility=UTILITY,
        first=WRITE_FIRST[first],
    )
    return dialogue(question, passages, task, "utility", referred=bool(reference))


def pointwise(
    question: str, passage: Passage, reference: str, form: Form, first: Form | None
) -> Prompt:
    """Ask whether one passage is useful; with `first`, for an answer before it."""
    task = JUDGE.format(
        question=question,
        reference=refer(reference, form),
        doubt=DOUBT if reference and form == "explicit" else "",
        passage=show(passage),
        utility=UTILITY,
        first=WRITE_FIRST[first],
    )
    return talk([ASSISTANT["utility"], READY, task], [passage])


def ranking(
    question: str, passages: Sequence[Passage], reference: str, form: Form, criterion: Criterion
) -> Prompt:
    """Ask for an order of the passages."""
    task = ranking_task(question, len(passages), reference, form, criterion)
    return dialogue(question, passages, task, criterion, referred=bool(reference))


def ranking_task(
    question: str, count: int, reference: str, form: Form, criterion: Criterion
) -> str:
    """The message that asks for a ranking, after `count` passages."""
    task = RANK[criterion].format(
        question=question, reference=refer(reference, form), utility=UTILITY, n=count
    )
    return task + RANK_FORM


def answer(question: str, evidence: Sequence[Passage], form: Form = "explicit") -> Prompt:
    """Ask for an answer, in the shared form of all workflows and meters: documents first."""
    shown = [cut(passage, SHOWN_WORDS) for passage in evidence]
    if form == "explicit":
        return short_answer(question, shown)
    user = Message(role="user", content=f"Question: {question}\n{INFORMATION_TASK}")
    keys = tuple(passage.key for passage in shown)
    return Prompt(messages=(system(shown), user), shown=keys)
