"""EoR over sources whose rankings are fused: each still asked once, and shared."""

from collections.abc import Sequence

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Hit, Question, Run
from hopscope.workflows import eor
from hopscope.workflows.eor import _ensemble
from tests.fakes import passage
from tests.talk import Talker

QUESTION = Question(text="Who directed Moon Harbor?")


class Ranked:
    """Finds these, with these scores."""

    def __init__(self, name: str, **scores: float) -> None:
        self.name = name
        self.scores = scores
        self.asked: list[int] = []

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.asked.append(k)
        hits = [Hit(passage=passage(key), score=score) for key, score in self.scores.items()]
        return [hits[:k] for _ in queries]


def ask(monkeypatch: pytest.MonkeyPatch, pool: str, replies: list[str], depth: int = 20) -> Run:
    wiki, web = Ranked("wiki", a=9, b=8, c=1), Ranked("web", d=0.9, b=0.8, a=0.1)
    monkeypatch.setattr(_ensemble, "configure", lambda text: {"SE": web})
    workflow = Workflow("eor", eor.build(pool=pool, sources="SE=searxng:http://h", depth=depth), {})
    deps = Deps(reader=Talker(replies), retriever=wiki)
    result = run(workflow, QUESTION, deps)
    assert result.status == "ok", result.error
    assert [len(source.asked) for source in (wiki, web)] == [1, 1]
    return result


def shown(result: Run) -> list[tuple[str, ...]]:
    return [step.shown for step in result.steps if step.name == "generate"]


@pytest.mark.parametrize(
    ("retriever", "expected"),
    [
        # 1/2 + 1/4, 2/3, 1/4 and 1/2 for a, b, c and d with k = 1.
        ("rrf(Wiki,SE,k=1)", ("a", "b", "d", "c")),
        ("rrf(Wiki,SE,k=1)@2", ("a", "b")),
        # a 1/2, b 1/3, c 1/4, and d 3 * 1/2.
        ("rrf(Wiki,3*SE@1,k=1)@3", ("d", "a", "b")),
        # Scores decide: a 1 + 0, b 7/8 + 7/8, c 0, d 1.
        ("weighted(Wiki,SE)", ("b", "a", "d", "c")),
    ],
)
def test_rankings_are_fused_and_then_kept_from(
    monkeypatch: pytest.MonkeyPatch, retriever: str, expected: tuple[str, ...]
) -> None:
    result = ask(monkeypatch, f"{retriever},Wiki@1", ["Tarn", "Tarn"])
    assert [s.name for s in result.steps] == [
        "retrieve", "retrieve", "generate", "generate", "vote",
    ]  # fmt: skip
    assert shown(result) == [expected, ("a",)]
    assert tuple(p.id for p in result.steps[1].evidence) == expected


def test_a_fused_ranking_is_reranked_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = "rrf(Wiki,SE)@RR@2,rrf(Wiki,SE)@RR@1&SE@1@CP"
    result = ask(monkeypatch, pool, ["[4] > [3]", "Tarn", "A summary.", "Tarn"])
    names = [s.name for s in result.steps]
    assert names == ["retrieve", "retrieve", "rerank", "generate", "compress", "generate", "vote"]
    assert result.steps[2].output == "rrf(Wiki,SE)@RR"
    assert len(result.steps[2].shown) == 4
    first, second = result.steps[2].shown[3], result.steps[2].shown[2]
    assert shown(result)[0] == (first, second)
    assert result.steps[4].shown == tuple(dict.fromkeys((first, "d")))


def test_mistakes_in_a_fusion_are_told_before_any_run() -> None:
    for pool, told in (
        ("blend(Wiki,PK)", "no 'blend' among fusions"),
        ("rrf(Wiki,PK,k=-1)", "must be 0 or more"),
        ("rrf(Wiki,News)", "News in the pool is no source"),
    ):
        with pytest.raises(UsageError, match=told):
            eor.build(pool=pool)
