"""The forms in which models trained to search write: their tags and transcripts.

Search-R1 (Jin et al. 2025, arXiv 2503.09516) and R1-Searcher (Song et al. 2025, arXiv 2503.05592).
Invariant: prompts and tags are those of the authors' code, since the models know no others. Only
the model and this module write tags: passages and questions, which are untrusted, have theirs
broken.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.types import Generation, Hit, Passage, Prompt

Format = Literal["search-r1", "r1-searcher"]
TAG = re.compile(
    "[<\uff1c](?=/?(?:think|search|information|answer)[>\uff1e]"
    "|[|\uff5c](?:begin|end)_of_(?:query|documents)[|\uff5c][>\uff1e])",
    re.IGNORECASE,
)
"""The bracket that begins a tag of either form; a normalizing tokenizer reads full-width ones as
plain ones."""


def defuse(text: str) -> str:
    """The text with a space inside every tag, which is one no more."""
    return TAG.sub(lambda bracket: f"{bracket[0]} ", text)


class Turn(NamedTuple):
    """What the model writes up to a search or an answer."""

    text: str
    """Up to the end of the query or of the answer, closing tag included, if it has one."""
    query: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Form:
    """One way of writing."""

    prompt_name: str
    """The prompt; the model continues its transcript."""
    begun: str
    """What the model's reply begins with."""
    query: tuple[str, str]
    """The tags around a query."""
    documents: tuple[str, str]
    """What stands before and after the passages found, white space included."""
    passage: str
    """A passage, with its `number`, `title` and `text`."""
    nothing: str
    """In place of the passages, where a search finds none."""
    thought: tuple[str, str]
    """The tags that a server removes around a thought; the first is begun already, or not."""
    retry: str | None
    """What a model is told that wrote neither query nor answer; None ends the run."""

    @property
    def stop(self) -> tuple[str, str]:
        """The tags that end a turn."""
        return self.query[1], ANSWER[1]

    def written(self, generation: Generation) -> str:
        """All that the model wrote: some servers part the thought from it."""
        thought = generation.thought
        if thought is None or not thought.text:
            return generation.text
        return f"{self.thought[0]}{thought.text}{self.thought[1]}{generation.text}"

    def read(self, text: str) -> Turn:
        """The turn at the beginning of a text: its first query or answer ends it."""
        tagged = [(at, tags) for tags in (self.query, ANSWER) if (at := text.find(tags[0])) >= 0]
        if not tagged:
            return Turn(text)
        at, (opening, closing) = min(tagged)
        start = at + len(opening)
        inside = text[start:].partition(closing)[0]
        whole = f"{text[:start]}{inside}{closing}"
        if closing == ANSWER[1]:
            return Turn(whole, answer=inside.strip())
        return Turn(whole, query=" ".join(inside.replace('"', " ").split()))

    def concluded(self, text: str) -> Turn:
        """The turn of a reply that was begun with the tag of the answer."""
        inside = text.strip().removeprefix(ANSWER[0]).partition(ANSWER[1])[0]
        return Turn(f"{ANSWER[0]}{inside}{ANSWER[1]}", answer=inside.strip())

    def found(self, passages: Sequence[Passage]) -> str:
        """The passages that a search found, as the model is shown them."""
        lines = [
            self.passage.format(number=i, title=defuse(p.title), text=defuse(p.text))
            for i, p in enumerate(passages, start=1)
        ]
        return f"{self.documents[0]}{''.join(lines).strip() or self.nothing}{self.documents[1]}"

    def prompt(
        self,
        prompts: PromptSet,
        question: str,
        turns: Sequence[str],
        rankings: Sequence[Sequence[Hit]],
        kept: Collection[str],
        *,
        closing: bool = False,
    ) -> Prompt:
        """The transcript so far, which the model continues.

        Args:
            turns: what the model wrote, each up to its query.
            rankings: what each search found; the last may not have been carried out.
            kept: the keys of the passages to show.
            closing: let the model answer now, whatever is still open.
        """
        parts, shown, searches = [self.begun], list[str](), iter(rankings)
        for text in turns:
            parts.append(text)
            if self.read(text).query is None:
                parts.append(self.retry or "")
            elif (ranking := next(searches, None)) is not None:
                passages = [hit.passage for hit in ranking if hit.passage.key in kept]
                parts.append(self.found(passages))
                shown += [passage.key for passage in passages]
        if closing:
            parts.append(ANSWER[0] if "".join(parts).endswith("\n") else f"\n\n{ANSWER[0]}")
        made = prompts.render(
            self.prompt_name, question=defuse(question), transcript="".join(parts)
        )
        return made.model_copy(update={"shown": tuple(dict.fromkeys(shown))})


ANSWER = ("<answer>", "</answer>")
SEARCH_R1 = Form(
    prompt_name="search_agent/search-r1",
    begun="",
    query=("<search>", "</search>"),
    documents=("\n\n<information>", "</information>\n\n"),
    passage="Doc {number}(Title: {title}) {text}\n",
    nothing="",
    thought=("<think>", "</think>"),
    retry="\nMy previous action is invalid. If I want to search, I should put the query between "
    "<search> and </search>. If I want to give the final answer, I should put the answer between "
    "<answer> and </answer>. Let me try again.\n",
)
R1_SEARCHER = Form(
    prompt_name="search_agent/r1-searcher",
    begun="<think>",
    query=("<|begin_of_query|>", "<|end_of_query|>"),
    documents=("\n\n<|begin_of_documents|>\n", "\n<|end_of_documents|>\n\n"),
    passage="({number}){title}   {text}\n",
    nothing="None",
    thought=("", "</think>"),
    retry=None,
)
FORMS: Mapping[Format, Form] = {"search-r1": SEARCH_R1, "r1-searcher": R1_SEARCHER}
