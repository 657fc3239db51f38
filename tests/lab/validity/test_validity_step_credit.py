"""What is said of each step of a run that is known."""

from collections.abc import Sequence

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.validity import step_credit
from hopscope.runtime.types import GenerationRequest, Hit, Passage, Question, Run, Step
from hopscope.tracing.games.frozen import contributions
from tests.fakes import NOW, ScriptedReader, step
from tests.probes import Speaker

FIRST = Passage(id="a", title="Dream", text="Dream was directed by Ada Valmar.")
SECOND = Passage(id="b", title="Ada Valmar", text="The spouse of Ada Valmar is Enzo Dalbeck.")
OTHER = Passage(id="c", title="Road", text="Road was directed by Ida Norvik.")
ITEM = KnownQuestion(
    Question(text="Who is married to the director of Dream?", answers=("Enzo Dalbeck",)),
    (FIRST, SECOND),
)


def retrieval(index: int, ranked: Sequence[Passage], evidence: Sequence[Passage]) -> Step:
    """A search whose last passage was the only one that was new."""
    return step(
        index,
        [ranked[-1].key],
        evidence=tuple(evidence),
        ranked=tuple(Hit(passage=p, score=9.0 - rank) for rank, p in enumerate(ranked)),
    )


RUN = Run(
    id="run",
    question=ITEM.question,
    workflow="ircot",
    steps=(
        retrieval(0, [FIRST], [FIRST]),
        retrieval(1, [FIRST, OTHER], [FIRST, OTHER]),
        retrieval(2, [OTHER, FIRST, SECOND], [FIRST, OTHER, SECOND]),
    ),
    started=NOW,
)


def test_the_baselines_of_a_step() -> None:
    def similarity(one: str, other: str) -> float:
        return len(set(one.split()) & set(other.split())) / 10

    told = step_credit._baselines(RUN, contributions(RUN), ITEM, similarity)
    assert told["retriever score"] == {0: 9.0, 1: 8.0, 2: 7.0}
    assert told["1/rank"] == {0: 1.0, 1: 1 / 2, 2: 1 / 3}
    assert told["1/place of the step"] == {0: 1.0, 1: 1 / 2, 2: 1 / 3}
    assert told["answer's words"] == {0: 0.0, 1: 0.0, 2: 1.0}
    # The last adds "is", "of" and "Enzo"; "Dalbeck." is another word to this similarity.
    assert told["TF-IDF gain"] == pytest.approx({0: 0.0, 1: 0.0, 2: 0.3})
    without = step_credit._baselines(RUN, contributions(RUN), ITEM, "no scikit-learn")
    assert without["TF-IDF gain"] == {}


def test_words_of_the_answer_count_after_normalisation() -> None:
    assert step_credit.overlap("Enzo Dalbeck", "About enzo.") == 0.5
    assert step_credit.overlap("the", "the") == 0


def test_similarity_is_the_cosine_of_tf_idf() -> None:
    similarity = step_credit._tf_idf([FIRST, SECOND, OTHER])
    assert not isinstance(similarity, str)
    assert similarity("spouse of Ada", "Ada spouse of") == pytest.approx(1)
    assert similarity("spouse", "Norvik") == 0
    assert similarity("", "spouse") == 0
    # What few passages say weighs more.
    assert similarity("spouse", "spouse Ada") > similarity("Ada", "spouse Ada")


def test_a_perfect_reader_s_credit_is_that_of_a_strict_chain() -> None:
    inputs = worlds.make(ScriptedReader(), seed=0, limit=1)
    credits = step_credit._credits(inputs, RUN, Perfect(ITEM), "")
    assert credits == {
        "trajectory": {0: 0, 1: 0, 2: 1},
        "leave-one-out": {0: 1, 1: 0, 2: 1},
        "Shapley": {0: 0.5, 1: 0, 2: 0.5},
    }


def test_a_run_that_failed_is_told_and_no_case() -> None:
    """The reader has no replies, so every run fails."""
    [table] = step_credit.build(worlds.make(ScriptedReader(), seed=0, limit=1))
    assert (
        "0 steps of 2 IRCoT runs (k=2), 0 brought gold; 0 runs found all gold; 2 runs failed"
        in (table.notes)
    )
    assert {figure.reason for figure in figures([table]).values()} == {
        "only one of the two classes occurs"
    }


def test_an_interruption_ends_the_suite_and_is_no_failed_run() -> None:
    """`run` catches Ctrl-C to keep its record, so a loop over runs would go on."""

    def interrupt(request: GenerationRequest) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        step_credit.build(worlds.make(Speaker(interrupt), seed=0, limit=1))
