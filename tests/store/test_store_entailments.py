"""What entailment models said of pairs of texts, in the database, and the model asked once."""

from collections.abc import Sequence
from pathlib import Path

from hopscope.api import parts
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import PairCounts
from hopscope.store.answers import Answers, of_pairs
from hopscope.store.database.database import Database
from hopscope.store.database.location import resolve
from hopscope.store.database.schema import entailments
from hopscope.store.store import Store
from hopscope.tracing.pairs.kept_entailment import KeptEntailment

AB, BA = Statement("Who?", "a", "b"), Statement("Who?", "b", "a")
SAID = Probabilities(1 / 3, 0.1 + 0.2, 0.7 / 3)


class Model:
    """Says the same of all pairs and keeps what it was asked."""

    def __init__(self, name: str = "model@1") -> None:
        self.name = name
        self.asked: list[list[Statement]] = []

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        self.asked.append(list(statements))
        return [SAID for _ in statements]


def test_what_was_said_is_not_asked_again_by_another_process(store: Store) -> None:
    """The second model has nothing but the database; not a digit is lost."""
    first, second = Model(), Model()
    assert KeptEntailment(first, store.entailments).classify_counted([AB, BA, AB]) == (
        [SAID] * 3,
        PairCounts(asked=3, computed=2),
    )
    assert KeptEntailment(second, store.entailments).classify_counted([BA, AB]) == (
        [SAID] * 2,
        PairCounts(asked=2, cached=2),
    )
    assert (first.asked, second.asked) == ([[AB, BA]], [])


def test_the_directions_the_question_and_the_model_tell_pairs_apart(store: Store) -> None:
    KeptEntailment(Model(), store.entailments).classify([AB])
    others = [BA, AB._replace(question="Where?"), AB._replace(hypothesis="B")]
    model, newer = Model(), Model("model@2")
    KeptEntailment(model, store.entailments).classify([AB, *others])
    assert model.asked == [others]
    KeptEntailment(newer, store.entailments).classify([AB])
    assert newer.asked == [[AB]]


def test_spaces_and_the_form_of_letters_do_not_tell_pairs_apart(store: Store) -> None:
    accented = Statement("Where?", "Lom\u00e9", "in Lom\u00e9")
    KeptEntailment(Model(), store.entailments).classify([accented])
    same = Statement(" Where? ", "Lome\u0301", "in\n Lome\u0301")
    found = KeptEntailment(Model(), store.entailments).classify_counted([same, accented])
    assert found.pairs == PairCounts(asked=2, cached=2)


def test_the_oldest_pairs_go(url: str) -> None:
    with Store.open(url):
        pass
    kept = Answers(database := Database(resolve(url)), table=entailments, room=2)
    for key in ("a", "b", "c"):
        kept.put({key: "[1, 0, 0]"})
    assert set(kept.get(["a", "b", "c"])) == {"b", "c"}
    assert Answers(database).get(["c"]) == {}  # those of readers are others
    assert set(of_pairs(database).get(["c"])) == {"c"}
    database.close()


def test_the_command_line_names_the_database(tmp_path: Path) -> None:
    spec = f"lexical,cache={tmp_path / 'pairs.db'}"
    assert parts.entailment(spec).classify([AB]) == parts.entailment(spec).classify([AB])
    with Store.open(tmp_path / "pairs.db") as store:
        kept = KeptEntailment(Model("lexical"), store.entailments)
        assert kept.classify_counted([AB]).pairs == PairCounts(asked=1, cached=1)
