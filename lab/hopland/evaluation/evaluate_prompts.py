"""The reader's figures on the workflows' other prompts, and its calibration.

The product's own parsers read the replies. A reply has the right format if its parser accepts it;
a ranking must name every passage once, and a word must be one of the offered ones.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hopscope.lab.export.preferences import INSTRUCTION
from hopscope.lab.hopland.cases import Case, Check, batches, cases, mean, resampled, share
from hopscope.lab.hopland.questions import GeneratedQuestion
from hopscope.runtime.compressors import summary
from hopscope.runtime.judgments import item_prompts as item
from hopscope.runtime.judgments.item_prompts import Criterion
from hopscope.runtime.judgments.permutation import permutation
from hopscope.runtime.judgments.selection import necessary_information, selection, verdict
from hopscope.runtime.ports import Reader, Statement
from hopscope.runtime.prompting import prompts
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.texts.continuation import extract_answer
from hopscope.runtime.types import GenerationRequest, Message, Prompt
from hopscope.tracing.entailments import judge
from hopscope.tracing.policies import self_report
from hopscope.workflows import flare_instruct
from hopscope.workflows.flare import questions
from hopscope.workflows.self_ask import dialogue_form

DEPTH = 5


class Obeys(Protocol):
    """Whether a reply has the requested form."""

    def __call__(self, reply: str, case: Case) -> bool: ...


@dataclass(frozen=True)
class Form:
    """A prompt and the form of its reply."""

    name: str
    prompt: Callable[[Case], Prompt]
    obeys: Obeys
    max_tokens: int = 128
    stop: tuple[str, ...] = ()


def _ask(name: str, case: Case, *, closed: bool = False, **values: object) -> Prompt:
    shown = () if closed else case.full
    return DEFAULT_PROMPTS.render(name, shown, question=case.asked.text, **values)


def _enough(case: Case) -> Prompt:
    return _ask(self_report.PROMPT, case)


def _draft(name: str, case: Case) -> Prompt:
    span = case.asked.steps[0].object.split()[0]
    return _ask(name, case, closed=True, written=case.asked.sentences[0], span=span)


def _sentence(reply: str, case: Case) -> bool:
    return re.fullmatch(r"\S.*\.", reply.strip(), re.DOTALL) is not None


def _whole_ranking(reply: str, case: Case) -> bool:
    n = len(case.full)
    return permutation(reply, n).ok and Counter(re.findall(r"\[(\d+)\]", reply)) == Counter(
        str(i) for i in range(1, n + 1)
    )


def _searched_or_answered(reply: str, case: Case) -> bool:
    text, query = flare_instruct.asked(reply)
    return bool(query) or (query is None and extract_answer(text) is not None)


def _asked_or_answered(reply: str, case: Case) -> bool:
    turn = dialogue_form.read(reply)
    return bool(turn.follow_up or turn.answer)


def _compared(case: Case) -> Prompt:
    return judge.prompt(
        Statement(case.asked.text, f"It is {case.asked.answer}.", case.asked.answer)
    )


FORMS = (
    Form(
        "short answer",
        lambda c: prompts.short_answer(c.asked.text, c.full),
        lambda reply, case: re.fullmatch(r"[\w' ]+", reply.strip()) is not None,
    ),
    Form(
        "chain of thought",
        lambda c: prompts.chain_of_thought(c.asked.text, c.full),
        lambda reply, case: extract_answer(reply) is not None,
    ),
    Form(
        "search, with passages",
        lambda c: _ask("flare_instruct/generate", c, searching=True, written=""),
        _searched_or_answered,
        stop=(")]",),
    ),
    Form(
        "search, without passages",
        lambda c: _ask("flare_instruct/generate", c, closed=True, searching=True, written=""),
        _searched_or_answered,
        stop=(")]",),
    ),
    Form(
        "self-ask",
        lambda c: _ask("self_ask/ask", c, dialogue=dialogue_form.OPENING),
        _asked_or_answered,
        stop=(f"\n{dialogue_form.INTERMEDIATE}",),
    ),
    Form(
        "implicit answer",
        lambda c: item.answer(c.asked.text, c.full, "implicit"),
        lambda reply, case: bool(necessary_information(reply)),
    ),
    Form(
        "background document",
        lambda c: _ask("eor/background", c, closed=True),
        _sentence,
    ),
    Form(
        "summary",
        lambda c: summary.prompt(c.asked.text, c.full),
        _sentence,
    ),
    Form(
        "enough",
        _enough,
        lambda reply, case: reply.strip() in ("Yes", "No"),
        8,
    ),
    Form(
        "phrase of a draft",
        lambda c: _draft("flare/expand", c),
        lambda reply, case: reply.strip() == case.asked.steps[0].object,
    ),
    Form(
        "question about a draft",
        lambda c: _draft("flare/question", c),
        lambda reply, case: bool(questions.question(reply)),
    ),
    Form(
        "rewritten query",
        lambda c: _rewriting(c.asked),
        lambda reply, case: case.asked.steps[0].subject in reply,
    ),
    Form(
        "comparison of answers",
        _compared,
        lambda reply, case: reply.strip() in ("Same", "Different", "Unclear"),
        8,
    ),
    Form(
        "selection",
        lambda c: item.listwise(c.asked.text, c.full, "", "explicit", None),
        lambda reply, case: selection(reply, len(case.full)).ok,
    ),
    Form(
        "selection after an answer",
        lambda c: item.listwise(c.asked.text, c.full, "", "explicit", "explicit"),
        lambda reply, case: selection(reply, len(case.full), after_text=True).ok,
    ),
    Form(
        "judgment of one passage",
        lambda c: item.pointwise(c.asked.text, c.full[0], "", "explicit", None),
        lambda reply, case: verdict(reply) is not None,
        32,
    ),
    Form(
        "ranking by relevance",
        lambda c: item.ranking(c.asked.text, c.full, "", "explicit", "relevance"),
        _whole_ranking,
    ),
    Form(
        "ranking by utility",
        lambda c: item.ranking(c.asked.text, c.full, c.asked.answer, "explicit", "utility"),
        _whole_ranking,
    ),
)


def _rewriting(asked: GeneratedQuestion) -> Prompt:
    system = Message(role="system", content=INSTRUCTION)
    return Prompt(messages=(system, Message(role="user", content=asked.text)))


def _replies(
    reader: Reader, asked: Sequence[Prompt], *, max_tokens: int = 128, stop: tuple[str, ...] = ()
) -> list[str]:
    requests = [GenerationRequest(prompt=p, max_tokens=max_tokens, stop=stop) for p in asked]
    return [replies[0].text for part in batches(requests) for replies in reader.generate(part)]


def obedience(reader: Reader, n: int) -> list[Check]:
    """The share of replies with the requested form, by prompt and in all."""
    over = [*cases(1, n // 2), *cases(2, n - n // 2)]
    found, everything = [], list[bool]()
    for form in FORMS:
        asked = [form.prompt(case) for case in over]
        replies = _replies(reader, asked, max_tokens=form.max_tokens, stop=form.stop)
        obeyed = [form.obeys(reply, case) for reply, case in zip(replies, over, strict=True)]
        everything += obeyed
        found.append(share(f"format, {form.name}", obeyed))
    return [share("format obeyed, all prompts", everything, ">= .99"), *found]


def judgments(reader: Reader, n: int) -> list[Check]:
    """Utility selections and rankings over ten passages, questions of one and of two hops."""
    over = [*cases(1, n // 2, passages=10), *cases(2, n - n // 2, passages=10)]
    found = []
    for name, given in (("", False), (", right reference answer", True)):
        asked = [
            item.listwise(c.asked.text, c.full, c.asked.answer if given else "", "explicit", None)
            for c in over
        ]
        picked = [set(selection(reply, 10).positions) for reply in _replies(reader, asked)]
        found.append(
            _micro_f1(f"utility selection, micro-F1{name}", picked, [c.gold for c in over])
        )
    criteria: tuple[Criterion, ...] = ("relevance", "utility")
    for criterion in criteria:
        asked = [item.ranking(c.asked.text, c.full, "", "explicit", criterion) for c in over]
        orders = [permutation(reply, 10).positions for reply in _replies(reader, asked)]
        gains = [_ndcg(order, c.gold) for order, c in zip(orders, over, strict=True)]
        found.append(mean(f"ranking by {criterion}, NDCG@{DEPTH}", gains, ">= .90"))
    return found


def _micro_f1(name: str, picked: Sequence[set[int]], gold: Sequence[frozenset[int]]) -> Check:
    """2 TP / (picked + gold) over all questions, with a bootstrap interval by question."""
    right = np.array([len(p & g) for p, g in zip(picked, gold, strict=True)])
    sizes = np.array([len(p) + len(g) for p, g in zip(picked, gold, strict=True)])
    rows = np.random.default_rng(0).integers(len(right), size=(2000, len(right)))
    drawn = 2 * right[rows].sum(1) / sizes[rows].sum(1)
    value = float(2 * right.sum() / sizes.sum())
    return resampled(name, value, drawn, len(right), ">= .90")


def _ndcg(order: Sequence[int], gold: frozenset[int]) -> float:
    """Normalised discounted gain of the first ranks, gold passages counting 1."""
    gain = sum(1 / math.log2(rank + 1) for rank, i in enumerate(order[:DEPTH], 1) if i in gold)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(DEPTH, len(gold)) + 1))
