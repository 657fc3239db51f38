"""The reader's target for each prompt of the product, one function per prompt.

Invariants: the product's own functions build the prompts, as the workflows send them, except that
the end of a ranking is trained without passages; and each target follows from the question's facts
and from the facts of the passages.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hopscope.lab.export.preferences import INSTRUCTION as REWRITE
from hopscope.lab.hopland.questions import MARKER, GeneratedQuestion
from hopscope.lab.hopland.relations import RELATIONS
from hopscope.lab.hopland.world import FIXED_FACTS, Fact
from hopscope.runtime.compressors import summary
from hopscope.runtime.judgments import item_prompts as item
from hopscope.runtime.judgments.item_prompts import Criterion, Form
from hopscope.runtime.ports import Statement
from hopscope.runtime.prompting import prompts
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Message, Passage, Prompt
from hopscope.tracing.entailments import judge
from hopscope.tracing.policies import self_report
from hopscope.workflows.self_ask import dialogue_form

FEW_TOKENS = 3.0
"""The loss weight of a verdict's tokens: they are few and decide much."""
JUDGMENTS = {True: "My judgment: Yes, it has utility.", False: "My judgment: No, it has none."}


@dataclass(frozen=True)
class Cue:
    """The source of a part of the target, which guides attention in training."""

    start: int
    end: int
    """The part, in characters of the target."""
    facts: tuple[Fact, ...] = ()
    """The part is the object of the last fact; the earlier ones lead to it."""
    number: bool = False
    """Whether the part is instead the number, in a dialogue, of the passage that states it."""


@dataclass(frozen=True)
class Turn:
    """The last message of a prompt, and the reader's target."""

    kind: str
    user: str
    said: str
    begun: str = ""
    """The beginning of the reply that the prompt contains; it is not learned."""
    cues: tuple[Cue, ...] = ()
    faint: int | None = None
    """From this character of the target on the loss has a low weight: a list's tail."""
    weight: float = 1.0
    """The loss weight of each of its tokens."""
    absent: bool = False
    """Whether the passages lack a fact that the answer needs."""


@dataclass(frozen=True)
class Scene:
    """A question over passages."""

    rng: random.Random
    asked: GeneratedQuestion
    passages: tuple[Passage, ...]
    told: tuple[tuple[Fact, ...], ...]
    """For each passage, the facts it states."""
    other: str
    """A name of the answer's type that is not the answer."""

    @property
    def facts(self) -> frozenset[Fact]:
        """All facts of the passages."""
        return frozenset(fact for facts in self.told for fact in facts)

    def known(self, fact: Fact) -> bool:
        """Whether the passages state the fact or it holds in every world."""
        return fact in self.facts or FIXED_FACTS.get((fact.subject, fact.relation)) == fact

    @property
    def lacking(self) -> bool:
        """Whether a fact that the answer needs is unknown."""
        return not all(map(self.known, self.asked.steps))

    @property
    def gold(self) -> list[int]:
        """Numbers, from 1, of the passages that state facts of the question, in its order."""
        found = [
            number
            for step in self.asked.steps
            for number, facts in enumerate(self.told, start=1)
            if step in facts
        ]
        return list(dict.fromkeys(found))


Task = Callable[[Scene], Turn]


def _last(prompt: Prompt) -> str:
    return prompt.messages[-1].content


def _asked(name: str, scene: Scene, **values: object) -> str:
    """The last message of a prompt about the scene's question."""
    return _last(DEFAULT_PROMPTS.render(name, question=scene.asked.text, **values))


def _direct(scene: Scene, start: int = 0) -> tuple[Cue, ...]:
    """The source of a short answer: the last fact, by way of the facts before it."""
    if scene.asked.kind != "chain":
        return ()
    return (Cue(start, start + len(scene.asked.answer), scene.asked.steps),)


def _sentences(scene: Scene, text: str, start: int = 0) -> tuple[Cue, ...]:
    """The source of each sentence: its own fact."""
    cues = []
    for sentence, fact in zip(scene.asked.sentences, scene.asked.steps, strict=True):
        at = text.find(sentence, start)
        if at >= 0:
            end = at + len(sentence) - 1
            cues.append(Cue(end - len(fact.object), end, (fact,)))
    return tuple(cues)


def _query(fact: Fact) -> str:
    return RELATIONS[fact.relation].questions[0].format(s=fact.subject)


def answer(scene: Scene) -> Turn:
    """The bare answer."""
    user = _last(prompts.short_answer(scene.asked.text))
    return Turn("answer", user, scene.asked.answer, cues=_direct(scene))


def reasoned(scene: Scene) -> Turn:
    """A chain of thought."""
    said = scene.asked.reasoning
    user = _last(prompts.chain_of_thought(scene.asked.text))
    return Turn("reasoned", user, said, cues=_sentences(scene, said))


def search(scene: Scene) -> Turn:
    """FLARE-instruct: continue up to the first unknown fact, and search for it."""
    sentences, steps = scene.asked.sentences, scene.asked.steps
    done = scene.rng.choice((0, 0, *range(len(steps) + 1)))
    begun = " ".join(sentences[:done])
    more = []
    for sentence, fact in zip(sentences[done:], steps[done:], strict=True):
        if not scene.known(fact):
            more.append(f"[Search({_query(fact)})]")
            break
        more.append(sentence)
    else:
        more.append(f"{MARKER} {scene.asked.answer}.")
    said = f"{' ' if begun else ''}{' '.join(more)}"
    cues = _sentences(scene, begun + said)
    written = tuple(cue for cue in cues if cue.start >= len(begun))
    user = _asked("flare_instruct/generate", scene, searching=True, written=begun)
    return Turn("search", user, said, begun, written)


def self_ask(scene: Scene) -> Turn:
    """Self-Ask: follow-up questions and their answers; a question of one fact needs none."""
    asked, text = scene.asked, dialogue_form.OPENING
    cues: list[Cue] = []
    if len(asked.steps) == 1:
        text += f" No.\n{dialogue_form.FINAL} "
        cues += _direct(scene, len(text))
    else:
        text += " Yes."
        for fact in asked.steps:
            text += f"\nFollow up: {_query(fact)}\n{dialogue_form.INTERMEDIATE} "
            cues.append(Cue(len(text), len(text) + len(fact.object), (fact,)))
            text += fact.object
        text += f"\n{dialogue_form.FINAL} "
    text += asked.answer
    begun = dialogue_form.OPENING
    user = _asked("self_ask/ask", scene, dialogue=begun)
    return Turn("self_ask", user, text.removeprefix(begun), begun, tuple(cues))


def information(scene: Scene) -> Turn:
    """An implicit answer: the necessary facts."""
    said = _information(scene)
    return Turn(
        "information",
        _last(item.answer(scene.asked.text, (), "implicit")),
        said,
        cues=_sentences(scene, said),
    )


def _information(scene: Scene) -> str:
    return f"Necessary information: [{' '.join(scene.asked.sentences)}]"


def background(scene: Scene) -> Turn:
    """EoR's parametric knowledge: a document of the necessary facts."""
    return Turn("background", _asked("eor/background", scene), " ".join(scene.asked.sentences))


def summarise(scene: Scene) -> Turn:
    """A summary: the necessary facts that the documents state, else their first fact."""
    steps = [f for f in scene.asked.steps if f in scene.facts] or list(scene.told[0][:1])
    canonical = [RELATIONS[f.relation].canonical.format(s=f.subject, o=f.object) for f in steps]
    said = " ".join(dict.fromkeys(canonical))
    words = scene.rng.choice((summary.WORDS, summary.WORDS, 50, 100))
    user = _last(summary.prompt(scene.asked.text, (), words))
    return Turn("summary", user, said, cues=_sentences(scene, said))


def enough(scene: Scene) -> Turn:
    """Whether the passages and the fixed facts contain the answer."""
    said = "No" if scene.lacking else "Yes"
    return Turn("enough", _asked(self_report.PROMPT, scene), said, weight=FEW_TOKENS)


def expand(scene: Scene) -> Turn:
    """FLARE's explicit queries: the phrase at a span of the draft."""
    written, fact = _draft(scene)
    words = fact.object.split()
    span = " ".join(words[: scene.rng.randint(1, len(words))])
    user = _asked("flare/expand", scene, written=written, span=span)
    return Turn("expand", user, fact.object)


def ask(scene: Scene) -> Turn:
    """FLARE's explicit queries: the question that a span of the draft answers."""
    written, fact = _draft(scene)
    words = fact.object.split()
    span = " ".join(words[scene.rng.choice((0, 0, 0, len(words) - 1)) :])
    user = _asked("flare/question", scene, written=written, span=span)
    return Turn("ask", user, _query(fact))


def _draft(scene: Scene) -> tuple[str, Fact]:
    """The answer up to a sentence, and that sentence's fact."""
    place = scene.rng.randrange(len(scene.asked.steps))
    written = " ".join(scene.asked.sentences[: place + 1])
    return written, scene.asked.steps[place]


def rewrite(scene: Scene) -> Turn:
    """The query for the first necessary passage."""
    return Turn("rewrite", scene.asked.text, _query(scene.asked.steps[0]))


def same(scene: Scene) -> Turn:
    """Whether two answers say the same; equal ones do not occur."""
    asked, rng = scene.asked, scene.rng
    alike = rng.random() < 0.5
    name = asked.answer if alike else scene.other
    forms = [f"It is {name}.", f"The answer is {name}."]
    if asked.kind == "chain":
        forms.append(asked.sentences[-1].replace(asked.answer, name))
    said = rng.choice(forms)
    if not alike and rng.random() < 0.5:
        said = name
    statement = Statement(asked.text, said, asked.answer)
    return Turn(
        "same",
        _last(judge.prompt(statement)),
        "Same" if alike else "Different",
        weight=FEW_TOKENS,
    )


def pointwise(scene: Scene) -> Turn:
    """Whether one passage is useful."""
    rng = scene.rng
    number = rng.choice(scene.gold or [1]) if rng.random() < 0.5 else 0
    number = number or rng.randint(1, len(scene.passages))
    form, reference = _reference(scene) if rng.random() < 0.6 else ("explicit", "")
    prompt = item.pointwise(scene.asked.text, scene.passages[number - 1], reference, form, None)
    return Turn("judge", _last(prompt), JUDGMENTS[number in scene.gold], weight=FEW_TOKENS)


def _reference(scene: Scene, form: Form | None = None) -> tuple[Form, str]:
    """A pseudo-answer: mostly the right one."""
    forms: tuple[Form, Form] = ("explicit", "implicit")
    chosen = scene.rng.choice(forms) if form is None else form
    right = scene.asked.answer, " ".join(scene.asked.sentences)
    wrong = scene.other, right[1].replace(scene.asked.answer, scene.other)
    return chosen, (right if scene.rng.random() < 0.8 else wrong)[chosen == "implicit"]


def dialogue(scene: Scene, *, referred: bool) -> tuple[tuple[Message, ...], list[Turn]]:
    """Passages one by one, then selections and a ranking by utility."""
    every: tuple[Form, Form] = ("explicit", "implicit")
    refer = {form: _reference(scene, form)[1] if referred else "" for form in every}
    turns: list[Turn] = []
    opening: tuple[Message, ...] = ()
    firsts: list[Form | None] = [None] if referred else [None, "explicit", "implicit"]
    forms: list[Form] = ["explicit", "implicit"] if referred else ["explicit"]
    for form in forms:
        for first in firsts:
            prompt = item.listwise(scene.asked.text, scene.passages, refer[form], form, first)
            opening = prompt.messages[:-1]
            turns.append(_select(scene, _last(prompt), first))
    form = scene.rng.choice(forms)
    prompt = item.ranking(scene.asked.text, scene.passages, refer[form], form, "utility")
    turns.append(_rank(scene, _last(prompt)))
    return opening, turns


def relevance(scene: Scene, *, referred: bool) -> tuple[tuple[Message, ...], list[Turn]]:
    """Passages one by one, then a ranking by relevance."""
    form, reference = _reference(scene) if referred else ("explicit", "")
    prompt = item.ranking(scene.asked.text, scene.passages, reference, form, "relevance")
    return prompt.messages[:-1], [_rank(scene, _last(prompt))]


def _select(scene: Scene, user: str, first: Form | None) -> Turn:
    said, cues = "", list[Cue]()
    if first == "explicit":
        said = "Answer: "
        cues += _direct(scene, len(said))
        said += f"{scene.asked.answer}\n"
    elif first == "implicit":
        said = f"{_information(scene)}\n"
        cues += _sentences(scene, said)
    # In the order of the reasoning: ascending numbers would need a search before the first.
    said, numbered = _numbered(scene, said + "My selection:[", scene.gold, ",")
    kind = "select" if first is None else f"select after {first}"
    return Turn(
        kind,
        user,
        said + "].",
        cues=(*cues, *numbered),
        weight=1.0 if first else FEW_TOKENS,
    )


def _rank(scene: Scene, user: str) -> Turn:
    """The useful ones in the order of the reasoning, then the others in their given order."""
    gold = scene.gold
    rest = [n for n in range(1, len(scene.passages) + 1) if n not in gold]
    said, cues = _numbered(scene, "", [*gold, *rest], " > ")
    faint = cues[len(gold)].start if rest else None
    return Turn("rank", user, said, cues=cues, faint=faint, weight=FEW_TOKENS)


def tail(scene: Scene) -> Turn:
    """The end of a ranking: the passages not ranked yet, in their given order. It depends on no
    text, so it is trained without passages, in lists of all lengths."""
    rng = scene.rng
    count = rng.choice((*range(2, 10), 10, 10, 10, *range(11, 21)))
    named = rng.sample(range(1, count + 1), min(count - 1, rng.choice((0, 1, 1, 2, 2, 3, 4))))
    rest = [n for n in range(1, count + 1) if n not in named]
    said = " > ".join(f"[{n}]" for n in [*named, *rest])
    begun = " > ".join(f"[{n}]" for n in named)
    criterion: Criterion = rng.choice(("relevance", "utility"))
    blank = [Passage(text="")] * count
    user = _last(item.ranking(scene.asked.text, blank, "", "explicit", criterion))
    return Turn("tail", user, said.removeprefix(begun), begun)


def _numbered(
    scene: Scene, text: str, numbers: Sequence[int], between: str
) -> tuple[str, tuple[Cue, ...]]:
    cues = []
    for place, number in enumerate(numbers):
        text += f"{between if place else ''}["
        leading = _leading(scene, number)
        cues.append(Cue(len(text), len(text) + len(str(number)), leading, number=True))
        text += f"{number}]"
    return text, tuple(cues)


def _leading(scene: Scene, number: int) -> tuple[Fact, ...]:
    """The facts that lead to this passage's fact of the question, which comes last; empty if the
    passage states none."""
    steps = scene.asked.steps
    told = [place for place, step in enumerate(steps) if step in scene.told[number - 1]]
    if not told:
        return ()
    return steps[: told[-1] + 1] if scene.asked.kind == "chain" else (steps[told[0]],)


OVER_PASSAGES: tuple[tuple[Task, float], ...] = (
    (search, 2.0),
    (self_ask, 3.0),
    (information, 1.5),
    (summarise, 1.5),
    (enough, 2.5),
)
"""Tasks with their weights, besides the bare answer and the chain of thought."""
WITHOUT_PASSAGES: tuple[tuple[Task, float], ...] = (
    (search, 2.0),
    (self_ask, 1.5),
    (information, 1.0),
    (background, 1.5),
    (enough, 1.5),
    (expand, 1.0),
    (ask, 1.5),
)
OPENINGS: tuple[tuple[tuple[Message, ...], Task, float], ...] = (
    ((Message(role="system", content=REWRITE),), rewrite, 1.0),
    (judge.prompt(Statement("", "", "")).messages[:-1], same, 1.0),
    (item.pointwise("", Passage(text="."), "", "explicit", None).messages[:-1], pointwise, 3.0),
    (item.ranking("", (), "", "explicit", "utility").messages[:-1], tail, 4.0),
)
"""Prompts with an opening of their own, without documents."""


def drawn(rng: random.Random, tasks: Sequence[tuple[Task, float]]) -> Task:
    """One of them, by weight."""
    return rng.choices([task for task, _ in tasks], [weight for _, weight in tasks])[0]


def made(task: Task, scene: Scene) -> Turn:
    """A task's turn, marked if its evidence lacks a fact."""
    return replace(task(scene), absent=scene.lacking)
