"""Asking only about pairs that can matter finds what asking about all of them does."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, Passage, Question
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.meters import semantic_entropy, seper
from hopscope.tracing.pairs.clustering import Clustering, EquivalenceRule, equivalent
from hopscope.tracing.pairs.relations import NOTHING, Pair, Relations, alike
from tests.fakes import CONTRADICTS, ENTAILS, NEUTRAL, ReaderByEvidence, passage, reply

TEXTS, GOLDS = "abcd", ("g", "h")
WHO = Question(text="Who?", answers=GOLDS)
EVIDENCES: list[tuple[Passage, ...]] = [(), (passage("x"),), (passage("x"), passage("y"))]
LIKELY, EVEN = Probabilities(0.7, 0.2, 0.1), Probabilities(0.5, 0.5, 0.0)

Table = dict[Pair, Probabilities]


class Model:
    """Says what stands in its table, and keeps the pairs of each call."""

    name = "table"

    def __init__(self, table: Table) -> None:
        self.table = table
        self.calls: list[list[Pair]] = []

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        self.calls.append([(s.premise, s.hypothesis) for s in statements])
        return [self.table[pair] for pair in self.calls[-1]]

    @property
    def asked(self) -> list[Pair]:
        return [pair for call in self.calls for pair in call]


PAIRS = list(permutations([*TEXTS, *GOLDS], 2))
TABLES = st.lists(
    st.sampled_from([ENTAILS, NEUTRAL, CONTRADICTS, LIKELY, EVEN]),
    min_size=len(PAIRS),
    max_size=len(PAIRS),
).map(lambda drawn: dict(zip(PAIRS, drawn, strict=True)))
CONTEXTS = st.lists(
    st.lists(
        st.builds(reply, st.sampled_from([*TEXTS, ""]), st.tuples(st.floats(-5, 0))),
        min_size=2,
        max_size=6,
    ),
    min_size=1,
    max_size=len(EVIDENCES),
)
EQUIVALENCES = st.sampled_from(["bi", "loose", "threshold"])
THRESHOLDS = st.sampled_from([0.0, 0.5, 0.7])
CLUSTERINGS = st.sampled_from(["first-match", "seed"])


def reader(contexts: Sequence[Sequence[Generation]]) -> ReaderByEvidence:
    shown = [tuple(passage.key for passage in evidence) for evidence in EVIDENCES]
    return ReaderByEvidence(dict(zip(shown, contexts, strict=False)))


def says(table: Table, premise: str, hypothesis: str) -> Probabilities:
    return table[premise, hypothesis] if premise and hypothesis else NOTHING


def meanings(
    texts: Sequence[str],
    table: Table,
    equivalence: EquivalenceRule,
    threshold: float,
    clustering: Clustering,
) -> tuple[int, ...]:
    """The cluster of each text by the definition of the rules, all pairs being at hand."""
    owner: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        firsts = [each for each in owner if owner[each] == each]
        found = [
            first
            for first in firsts
            if equivalent(
                says(table, first, text), says(table, text, first), equivalence, threshold
            )
        ]
        owner[text] = (found or [text])[0 if clustering == "first-match" else -1]
    numbers = list(dict.fromkeys(owner[text] for text in texts))
    return tuple(numbers.index(owner[text]) for text in texts)


@given(TABLES, st.lists(st.sampled_from(PAIRS)), EQUIVALENCES, THRESHOLDS)
def test_the_second_direction_is_asked_about_only_where_the_first_allows_it(
    table: Table, pairs: list[Pair], equivalence: EquivalenceRule, threshold: float
) -> None:
    model = Model(table)
    relations = Relations(model, "Who?")
    found = relations.settle({0: alike(pairs, relations, equivalence, threshold)})[0]
    both = [(table[one, other], table[other, one]) for one, other in pairs]
    assert found == [equivalent(*each, equivalence, threshold) for each in both]
    assert len(model.asked) == len(set(model.asked))
    assert len(model.calls) <= 2
    spared = {
        frozenset(pair)
        for pair in pairs
        if pair not in model.asked or pair[::-1] not in model.asked
    }
    assert all(not same for pair, same in zip(pairs, found, strict=True) if {*pair} in spared)


@given(
    TABLES,
    CONTEXTS,
    st.fixed_dictionaries(
        {
            "weight": st.sampled_from(["lennorm", "uniform", "raw"]),
            "direction": st.sampled_from(["max", "r2g", "half"]),
            "golds": st.sampled_from([None, "max", "mean", "union"]),
            "equivalence": EQUIVALENCES,
            "match": EQUIVALENCES,
            "threshold": THRESHOLDS,
            "clustering": CLUSTERINGS,
        }
    ),
)
def test_a_value_is_that_of_the_whole_belief(
    table: Table, contexts: list[list[Generation]], options: dict[str, Any]
) -> None:
    """To the last bit, and clusters are those by definition."""
    evidences = EVIDENCES[: len(contexts)]
    whole = seper.build(reader(contexts), Model(table), samples=6, **options)
    beliefs = whole.beliefs(WHO, evidences)
    for kind in ("soft", "hard"):
        model = Model(table)
        meter = seper.build(reader(contexts), model, samples=6, kind=kind, **options)  # type: ignore[arg-type]
        for found, belief in zip(meter.measure(WHO, evidences), beliefs, strict=True):
            assert isinstance(belief, Belief)
            value = belief.soft if kind == "soft" else belief.hard
            assert found.value == (value if options["weight"] == "raw" else round(value, 12))
            assert belief.clusters == meanings(
                [sample.text for sample in belief.samples],
                table,
                options["equivalence"],
                options["threshold"],
                options["clustering"],
            )
        assert len(model.asked) == len(set(model.asked))
        if kind == "soft":
            assert all({*pair} & {*GOLDS} for pair in model.asked)


@given(TABLES, CONTEXTS, EQUIVALENCES, THRESHOLDS, CLUSTERINGS)
def test_semantic_entropy_is_that_of_all_pairs(
    table: Table,
    contexts: list[list[Generation]],
    equivalence: EquivalenceRule,
    threshold: float,
    clustering: Clustering,
) -> None:
    evidences = EVIDENCES[: len(contexts)]
    model = Model(table)
    meter = semantic_entropy.build(
        reader(contexts),
        model,
        entropy="discrete",
        equivalence=equivalence,
        threshold=threshold,
        clustering=clustering,
    )
    for found, replies in zip(meter.measure(WHO, evidences), contexts, strict=True):
        texts = sorted(each.text for each in replies)
        ids = meanings(texts, table, equivalence, threshold, clustering)
        expected = semantic_entropy.semantic_entropy([], ids, "discrete")
        assert found.value == (-round(expected, 12) if any(texts) else None)
    assert len(model.asked) == len(set(model.asked))


def by_default(relation: Probabilities, **known: Probabilities) -> Table:
    """One relation of all pairs, but for some, such as `ag` of a and g."""
    return dict.fromkeys(PAIRS, relation) | {(pair[0], pair[1]): p for pair, p in known.items()}


@pytest.mark.parametrize(
    ("kind", "options", "table", "asked"),
    [
        # An entailment for certain leaves nothing for the other direction to add.
        ("soft", {}, by_default(NEUTRAL, ag=ENTAILS), ["ag", "bg", "gb"]),
        ("soft", {"direction": "half"}, by_default(LIKELY), ["ag", "bg", "ga", "gb"]),
        ("soft", {"direction": "r2g"}, by_default(LIKELY), ["ag", "bg"]),
        # Where all replies agree with the gold, or none does, clusters are no matter.
        ("hard", {}, by_default(ENTAILS), ["ag", "bg", "ga", "gb"]),
        ("hard", {}, by_default(CONTRADICTS), ["ag", "bg"]),
        # Otherwise those are compared that differ, here one way, as it rules out the other.
        ("hard", {}, by_default(NEUTRAL, ag=ENTAILS), ["ag", "bg", "ga", "gb", "ab"]),
    ],
)
def test_pairs_that_cannot_change_the_value_are_not_asked_about(
    kind: Any, options: dict[str, Any], table: Table, asked: list[str]
) -> None:
    model = Model(table)
    replies = [reply(text) for text in "ab"]
    meter = seper.build(reader([replies]), model, samples=2, kind=kind, **options)
    meter.measure(Question(text="Who?", answers=("g",)), EVIDENCES[:1])
    assert ["".join(pair) for pair in model.asked] == asked


def test_all_contexts_go_on_side_by_side() -> None:
    """Two replies each: whatever the number of contexts, there is one call for a direction."""
    model = Model(by_default(LIKELY))
    contexts = [[reply("a"), reply("b")], [reply("c"), reply("d")], [reply("a"), reply("c")]]
    semantic_entropy.build(reader(contexts), model).measure(WHO, EVIDENCES)
    assert [["".join(pair) for pair in call] for call in model.calls] == [
        ["ab", "cd", "ac"],
        ["ba", "dc", "ca"],
    ]


def test_what_says_less_is_the_first_premise() -> None:
    """It entails least, so that the other direction is spared most often."""
    model = Model({("Bo", "Bo of Ur"): NEUTRAL})
    relations = Relations(model, "Who?")
    asking = alike([("Bo of Ur", "Bo")], relations, "bi", 0.5)
    assert relations.settle({0: asking}) == {0: [False]}
    assert model.asked == [("Bo", "Bo of Ur")]
