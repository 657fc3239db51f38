"""The embedded answer-equivalence model: its rules, its reasons, and that it is a function."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from hopscope.runtime.errors import EntailmentError
from hopscope.runtime.ports import Statement
from hopscope.tracing.entailments import equivalence
from hopscope.tracing.entailments.equivalence.calibration import Calibration
from hopscope.tracing.entailments.equivalence.features import NAMES, features
from hopscope.tracing.entailments.equivalence.golds import Golds
from hopscope.tracing.entailments.equivalence.words import Text, alternatives, items
from hopscope.tracing.scoring.correctness import Answered

MODEL = Path(equivalence.__file__).parent / equivalence.MODEL
WHO = "Who directed Alba?"


def entailed(question: str, premise: str, hypothesis: str) -> float:
    return equivalence.build().classify([Statement(question, premise, hypothesis)])[0].entailment


def measured(question: str, golds: list[str], answer: str) -> dict[str, float]:
    found = features(Golds(Text(question), [Text(gold) for gold in golds]), Text(answer))
    return dict(zip(NAMES, found, strict=True))


@pytest.mark.parametrize(
    ("question", "premise", "hypothesis", "expected"),
    [
        ("", "", "Lisbon", (0, 1, 0)),
        ("", "Lisbon", "...", (0, 1, 0)),
        ("", "!!", "!!", (1, 0, 0)),
        ("", "São Paulo!", "sao paulo", (1, 0, 0)),
        ("How many?", "forty-three", "43", (1, 0, 0)),
        ("Is it?", "Yes, it is", "yes", (1, 0, 0)),
        ("Is it?", "No.", "yes", (0, 0, 1)),
        ("Is it?", "false", "no", (1, 0, 0)),
        ("Is it?", "It is", "yes", (0, 1, 0)),
        ("When was Alba made?", "12 May 1951", "12 May 1952", (0, 0, 1)),
    ],
)
def test_rules(
    question: str, premise: str, hypothesis: str, expected: tuple[float, float, float]
) -> None:
    found = equivalence.build().classify([Statement(question, premise, hypothesis)])
    assert tuple(found[0]) == expected


def test_yes_can_be_a_name() -> None:
    """The rule for yes and no would deny it, because the answer does not begin with it."""
    assert entailed("Which band made Fragile?", "The album is by the band Yes.", "Yes") > 0.5


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("The film Alba was directed by Bruno Costa.", "Bruno Costa"),
        ("Bruno Costa", "The film Alba was directed by Bruno Costa."),
        ("Costa", "Bruno Costa"),
        ("Bruno Costa", "Costa, Bruno"),
        ("Sir Bruno Costa", "Bruno Costa"),
        ("Bruno Kosta", "Bruno Costa"),
    ],
)
def test_the_same_in_other_words(premise: str, hypothesis: str) -> None:
    assert entailed(WHO, premise, hypothesis) > 0.5


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("Ana Silva", "Bruno Costa"),
        ("The film Alba was directed by Ana Silva.", "Bruno Costa"),
        ("It was not Bruno Costa.", "Bruno Costa"),
        ("I'm sorry, I could not find who directed Alba.", "Bruno Costa"),
        ("Alba", "Bruno Costa"),
    ],
)
def test_something_else(premise: str, hypothesis: str) -> None:
    assert entailed(WHO, premise, hypothesis) < 0.5


def test_initials_and_scales_of_numbers() -> None:
    assert entailed("Which country?", "USA", "United States of America") > 0.5
    assert entailed("How many people?", "5 million", "5,000,000") == 1
    assert entailed("How many people?", "5 million", "5") < 0.5


def test_a_refusal_is_neutral_and_another_name_contradicts() -> None:
    refused, other = equivalence.build().classify(
        [Statement(WHO, "I don't know.", "Bruno Costa"), Statement(WHO, "Ana Silva", "Bruno Costa")]
    )
    assert refused.neutral > 0.5
    assert refused.contradiction == 0
    assert other.contradiction > 0.5
    assert other.neutral == 0


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_any_texts_have_a_distribution(question: str, premise: str, hypothesis: str) -> None:
    found = equivalence.build().classify([Statement(question, premise, hypothesis)])[0]
    assert sum(found) == pytest.approx(1)
    assert min(found) >= 0


@settings(deadline=None)
@given(st.text(), st.text().filter(str.strip))
def test_a_text_says_the_same_as_itself(question: str, text: str) -> None:
    assert entailed(question, text, text) == 1


@settings(deadline=None)
@given(st.text(), st.lists(st.text(), max_size=4), st.text())
def test_features_are_finite(question: str, golds: list[str], answer: str) -> None:
    assert np.isfinite(list(measured(question, golds, answer).values())).all()


def test_neither_order_nor_repetition_of_golds_matters() -> None:
    golds = ("Bruno Costa", "B. Costa", "Costa, Bruno (director)")
    model = equivalence.build()
    answered = [
        Answered(WHO, (*order, order[0]), "It was Bruno Kosta") for order in permutations(golds)
    ]
    alone = [model.correctness([one])[0] for one in answered]
    assert len(set(alone)) == 1
    assert model.correctness(answered) == alone


def test_an_alias_that_the_answer_holds_can_decide() -> None:
    model = equivalence.build()
    answer = "The painter Amadeo."
    few, more = (Answered(WHO, golds, answer) for golds in [("Costa",), ("Costa", "Amadeo")])
    assert model.correctness([few])[0] < 0.5 < model.correctness([more])[0]


DAY, YEAR = "18 January 1788", "1788"


@pytest.mark.parametrize(
    ("golds", "answer", "right"),
    [
        # One alias differs in numbers, another is in the answer: it was denied.
        ((DAY, "26 January"), "26 January 1788", True),
        (("18 miles", "30 miles", "30"), "30 miles", True),
        (("June 1912", "1914"), "June 1914", True),
        # What is in the answer is only a part of the date that the answer contradicts.
        ((DAY, YEAR), "26 January 1788", False),
        ((DAY, YEAR), "The fleet arrived on 26 January 1788.", False),
        ((DAY, YEAR), "January 26th, 1788, in the bay", False),
        ((DAY, "January 1788", YEAR), "On the 26th of January 1788", False),
        (("the 18th of January", YEAR), "26 January 1788", False),
        ((DAY, "January 1788", YEAR), "January 1788, when 26 ships came", True),
        # The answer contradicts nothing.
        ((DAY, YEAR), "1788", True),
        ((DAY, YEAR), "in January 1788", True),
        ((DAY, YEAR), "It was on 18 January 1788, with 11 ships.", True),
        ((DAY, YEAR), "In January 1788, with 11 ships.", True),
        ((DAY, "26 January 1788", YEAR), "They landed on 26 January 1788", True),
        # No alias is in the answer.
        ((DAY, "19 January 1788"), "26 January 1788", False),
    ],
)
def test_numbers_are_compared_with_one_alias_at_a_time(
    golds: tuple[str, ...], answer: str, right: bool
) -> None:
    """An alias that differed in numbers denied an answer that held another alias; a year was
    enough for an answer with the wrong day."""
    asked = Answered("When did the first fleet arrive in Australia?", golds, answer)
    model = equivalence.build()
    [found] = model.correctness([asked])
    assert (found > 0.5) is right
    assert model.explain(asked).probability == found


def test_without_golds_nothing_is_right() -> None:
    assert equivalence.build().correctness([Answered(WHO, (), "Lisbon")]) == [0.0]


def test_batches_and_threads_change_nothing() -> None:
    model = equivalence.build()
    statements = [Statement(WHO, f"Bruno {i} Costa", f"Costa {i % 7}") for i in range(3000)]
    together = model.classify(statements)
    assert together[::997] == [model.classify([s])[0] for s in statements[::997]]
    with ThreadPoolExecutor(4) as pool:
        assert all(found == together for found in pool.map(model.classify, [statements] * 4))


def test_reasons_add_up_to_the_judgement() -> None:
    told = equivalence.build().explain(Answered(WHO, ("Bruno Costa",), "Bruno Silva"))
    logit = told.bias + told.calibration + sum(reason.contribution for reason in told.reasons)
    assert told.calibration != 0
    assert told.probability == pytest.approx(1 / (1 + np.exp(-logit)))
    assert told.rule is None
    sizes = [abs(reason.contribution) for reason in told.reasons]
    assert sizes == sorted(sizes, reverse=True)
    assert {reason.feature for reason in told.reasons} == set(NAMES)


def test_calibration_rises_and_keeps_rankings() -> None:
    curve = Calibration(*load_file(MODEL)["calibration"])
    assert curve(curve.before) == pytest.approx(curve.after)
    logits = curve(np.linspace(-30, 30, 6001))
    assert (np.diff(logits) > 0).all()
    assert logits[-1] - logits[-101] == pytest.approx(1)  # parallel to the diagonal outside


def test_a_rule_that_decided_is_named() -> None:
    told = equivalence.build().explain(Answered(WHO, ("Bruno Costa",), "BRUNO COSTA"))
    assert (told.probability, told.rule, told.reasons) == (1.0, "the same words", ())


def test_the_model_is_small_and_holds_no_text() -> None:
    """Anything but numbers under these names could be words of the data."""
    assert MODEL.stat().st_size < 5_000_000
    tensors = load_file(MODEL)
    assert sorted(tensors) == ["calibration", "split", "threshold", "value"]
    assert tensors["split"].dtype == np.int16
    assert tensors["split"].max() < len(NAMES)


def test_a_damaged_or_foreign_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EntailmentError, match="no model that can be read"):
        equivalence.from_file(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("no tensors")
    with pytest.raises(EntailmentError, match="no model"):
        equivalence.from_file(tmp_path / "text.safetensors")
    save_file(load_file(MODEL), tmp_path / "other.safetensors", metadata={"features": "a b"})
    with pytest.raises(EntailmentError, match="other features"):
        equivalence.from_file(tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Edward VII", ["edward", "7"]),
        ("Edward the Seventh", ["edward", "the", "7"]),
        ("King Charles I.", ["king", "charles", "1"]),
        ("I said so", ["i", "said", "so"]),
        ("\u00a350m", ["50000000"]),
        ("2.5 million", ["2500000"]),
        ("forty-three", ["43"]),
        ("1,000", ["1000"]),
        ("Lom\u00e9 & Bird\u2019s", ["lome", "and", "birds"]),
        ("800m", ["800", "m"]),
        ("12 metres", ["12", "m"]),
        ("36.0", ["36"]),
        ("3.50", ["3.5"]),
        ("05 May", ["5", "may"]),
        ("the 26th", ["the", "26"]),
        ("1632\u201353", ["1632", "1653"]),
        ("1999-98", ["1999", "98"]),
        ("2014-05-12", ["2014", "5", "12"]),
        ("1877[1][2]", ["1877"]),
        ("1877\u00b9", ["1877"]),
        ("[5]", ["5"]),
    ],
)
def test_reading(text: str, words: list[str]) -> None:
    assert Text(text).words == words


def test_remarks_and_choices_in_a_gold() -> None:
    assert "Boyle" in alternatives("(Robert) Boyle")
    assert "Duke of Cambridge" in alternatives("Prince William (accept Duke of Cambridge)")
    assert alternatives("Puff, the magic dragon") == ["Puff"]
    assert alternatives("Alice or Louise")[:2] == ["Alice", "Louise"]
    assert alternatives("Lisbon") == []
    assert items("Chile and Argentina") == ["Chile", "Argentina"]
    assert items("Chile") == ["Chile"]


def test_features_by_hand() -> None:
    """Weights: alba and costa .85, bruno .85; costa is asked for, and then weighs a quarter."""
    found = measured("Which Costa made Alba?", ["Bruno Costa", "Dario"], "bruno lima 1951")
    assert found["recall"] == pytest.approx(0.85 / (0.85 + 0.85 / 4))
    assert found["recall_new"] == 1
    assert found["contained"] == 0
    assert found["golds"] == 2
    assert found["gold_words"] == 1.5
    # bruno .85 of bruno .85, lima .73 and the number 1.
    assert found["precision"] == pytest.approx(0.85 / 2.58)
    assert found["words_other"] == 2
    assert found["numbers_said"] == -1


def test_a_denial_counts_where_it_stands_before_the_gold() -> None:
    assert measured(WHO, ["Bruno Costa"], "It was not Bruno Costa")["denied"] == 1
    assert measured(WHO, ["Bruno Costa"], "Bruno Costa, not Ana Silva")["denied"] == 0
    assert measured(WHO, ["not Bruno"], "not Bruno")["denied"] == 0
