"""People's labels in the database, and the record of what was pushed."""

from datetime import UTC, datetime, timedelta

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Run
from hopscope.store.labels import Label
from hopscope.store.pushes import Sent
from hopscope.store.store import Store

NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
RUN = Run(id="r1", question=Question(text="Who?"), workflow="naive", started=NOW)
RELEVANT = Label(
    run_id="r1",
    target="passage",
    step=2,
    passage="p7",
    name="relevant",
    score=1.0,
    label="yes",
    note="it names her",
    author="ada",
    source="view",
    made=NOW,
)
LABELS = [
    RELEVANT,
    Label(run_id="r1", target="answer", name="correct", score=0.0, source="phoenix", made=NOW),
    Label(run_id="r1", target="step", step=2, name="useful", note="no", source="view", made=NOW),
]


def test_labels_come_back_as_they_were(store: Store) -> None:
    store.save(RUN)
    assert store.labels.save(LABELS) == 3
    assert store.labels.save(LABELS) == 0
    assert store.labels.of(["r1"]) == {"r1": LABELS}


def test_a_person_s_next_label_replaces_the_former_and_no_other_person_s(store: Store) -> None:
    store.save(RUN)
    other = RELEVANT.model_copy(update={"author": "ben", "score": 0.5})
    later = RELEVANT.model_copy(update={"score": 0.0, "made": NOW + timedelta(days=1)})
    store.labels.save([RELEVANT, other])
    assert store.labels.save([later, other]) == 1
    assert store.labels.of(["r1"]) == {"r1": [other, later]}
    store.labels.delete([other])
    assert store.labels.of(["r1"]) == {"r1": [later]}


def test_labels_of_an_unknown_run_are_refused(store: Store) -> None:
    store.save(RUN)
    stray = RELEVANT.model_copy(update={"run_id": "r2"})
    with pytest.raises(UsageError, match="run r2"):
        store.labels.save([RELEVANT, stray])
    assert store.labels.of(["r1"]) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": None, "label": None, "note": None},
        {"target": "run"},
        {"passage": None},
        {"step": None},
    ],
)
def test_a_label_says_something_of_one_thing(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a label"):
        Label.model_validate(RELEVANT.model_dump() | wrong)


def test_what_was_pushed_is_known_for_its_target_only(store: Store) -> None:
    store.save(RUN)
    pushes, elsewhere = store.pushes("phoenix", "here"), store.pushes("phoenix", "there")
    failed = Sent("trace", "k", "c1", run_id="r1", reason="refused")
    pushes.record([failed])
    assert pushes.known("trace", ["k", "other"]) == {"k": failed._replace(run_id=None)}
    pushes.record([failed._replace(content="c2", remote="t1", reason=None)])
    assert pushes.known("trace", ["k"]) == {"k": Sent("trace", "k", "c2", remote="t1")}
    assert elsewhere.known("trace", ["k"]) == pushes.known("note", ["k"]) == {}
