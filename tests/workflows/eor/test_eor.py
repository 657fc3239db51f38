"""EoR's cycle over its pool, its sources and its vote, on scripted replies."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Entailment
from hopscope.runtime.rerankers import encoder
from hopscope.runtime.similarities import bertscore
from hopscope.runtime.stages import Candidates
from hopscope.runtime.types import GenerationRequest, Hit, Passage, Question, Run
from hopscope.workflows import eor
from hopscope.workflows.eor import _ensemble, _similarities, sources, weights_file
from hopscope.workflows.eor.voting import VotingRule
from tests import encoders
from tests.fakes import ENTAILS, NEUTRAL, ScriptedEntailment
from tests.probes import Say, Speaker, script, task
from tests.talk import Reply, ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Moon Harbor?", answers=("Velora Tarn",))
FOUND = [Passage(id=str(i), title=f"T{i}", text=f"Text {i}.") for i in range(1, 5)]
EM = "em=1"


def ask(
    say: Say | list[str],
    found: list[Passage] = FOUND,
    *,
    entailment: Entailment | None = None,
    similarities: str = EM,
    **options: Any,
) -> tuple[Run, Speaker, ScriptedRetriever]:
    reader = Speaker(script(say) if isinstance(say, list) else say)
    retriever = ScriptedRetriever({QUESTION.text: found})
    workflow = Workflow("eor", eor.build(similarities=similarities, **options), {})
    deps = Deps(reader=reader, retriever=retriever, entailment=entailment, seed=3)
    result = run(workflow, QUESTION, deps)
    assert result.status == "ok", result.error
    assert result.usage == reader.spent
    return result, reader, retriever


def ballot(result: Run) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(result.steps[-1].output or "")
    return said


def test_each_retriever_answers_and_the_answers_vote() -> None:
    replies = ["Tarn", "A summary.", "Velora Tarn", "Tarn was born.", "Miskel", "Velora Tarn"]
    result, reader, retriever = ask(replies, pool="Wiki@2,Wiki@3@CP,PK,ReFree", depth=4)
    assert [(s.name, s.kind) for s in result.steps] == [
        ("retrieve", "retrieve"),
        ("generate", "generate"),
        ("compress", "generate"),
        ("generate", "generate"),
        ("retrieve", "retrieve"),
        ("generate", "generate"),
        ("generate", "generate"),
        ("vote", "vote"),
    ]
    assert retriever.queries == [QUESTION.text]  # the index once, for both
    assert (result.answer, result.stop_reason) == ("Tarn", "answered")  # all contain it
    assert ballot(result)["scores"] == pytest.approx([2 / 3, 2 / 3, 0, 2 / 3])
    assert [s.output for s in result.steps if s.name == "retrieve"] == ["Wiki", "PK"]
    shown = [s.shown for s in result.steps]
    [background] = [hit.passage for hit in result.steps[4].ranked]
    assert shown == [(), ("1", "2"), ("1", "2", "3"), (), (), (background.key,), (), ()]
    assert [s.new for s in result.steps[:3]] == [("1", "2"), (), ("3",)]
    assert [len(s.ranked) for s in result.steps] == [4, 0, 0, 0, 1, 0, 0, 0]
    assert "A summary." in reader.requests[2].prompt.messages[0].content
    assert background.text == "Tarn was born."
    assert reader.requests[5].prompt.messages[0].content == "You answer questions."


def test_a_model_of_its_own_reranks_the_whole_list(tmp_path: Path) -> None:
    """The paper reranks by Contriever; the pool knew no reranker but the reader."""
    words = [
        Passage(id=str(i), text=text) for i, text in enumerate(("fox", "hen barn", "alba film"))
    ]
    spec = f"encoder:contriever:{encoders.bert(tmp_path / 'model')}"
    pool = f'Wiki@RR("{spec}")@2,Wiki@RR("{spec}")@1,Wiki@1'
    result, reader, _ = ask(["Tarn", "Tarn", "Miskel"], words, pool=pool)
    assert [s.name for s in result.steps] == ["retrieve", "rerank", *["generate"] * 3, "vote"]
    assert (result.steps[1].usage.calls, result.steps[1].parse_ok) == (0, None)
    alone = encoder.build(model=spec.partition(":")[2], device="cpu")
    hits = tuple(Hit(passage=passage, score=0) for passage in words)
    [expected] = alone.rerank([Candidates(QUESTION.text, hits)])
    best = tuple(hit.passage.id for hit in expected.hits)
    assert [s.shown for s in result.steps[2:5]] == [best[:2], best[:1], ("0",)]
    assert len(reader.requests) == 3


@pytest.mark.parametrize("by", ["utility", "listwise", "encoder:minilm,reader=tiny"])
def test_a_reranker_that_asks_a_reader_is_refused(by: str) -> None:
    with pytest.raises(UsageError, match=r"@RR\(.*asks"):
        eor.build(pool=f"Wiki@RR({by})")


def test_the_evidence_is_what_the_winner_found() -> None:
    result, *_ = ask(["no", "yes", "yes", "no"], pool="ReFree,Wiki@1,Wiki@2,Wiki@4")
    assert result.answer == "no"
    result, *_ = ask(["no", "yes", "yes", "oh"], pool="ReFree,Wiki@1,Wiki@2,Wiki@4")
    assert result.answer == "yes"
    assert [passage.id for passage in result.evidence] == ["1"]


def test_what_the_reader_knows_is_no_evidence() -> None:
    result, *_ = ask(["Background.", "x"], pool="PK")
    assert (result.answer, result.evidence) == ("x", ())


def test_the_reader_reranks_each_list_once_and_then_all_share_it() -> None:
    replies = ["[4] > [2]", "a", "b", "c"]
    result, *_ = ask(replies, pool="Wiki@RR@2,Wiki@RR@1&Wiki@2,Wiki@1")
    assert [s.name for s in result.steps][:3] == ["retrieve", "rerank", "generate"]
    assert [s.name for s in result.steps].count("rerank") == 1
    shown = [s.shown for s in result.steps if s.name == "generate"]
    assert shown == [("4", "2"), ("4", "1", "2"), ("1",)]
    assert result.steps[1].parse_ok
    assert [p.id for p in result.steps[0].evidence] == ["1", "2", "3", "4"]
    assert [p.id for p in result.steps[1].evidence] == ["4", "2"]


def test_a_long_list_is_reranked_window_by_window_each_a_step() -> None:
    many = [Passage(id=str(i), title="", text=f"Text {i}.") for i in range(25)]
    result, *_ = ask(["[20] > [1]", "[6] > [1]", "a"], many, pool="Wiki@RR@1", depth=25)
    assert [s.name for s in result.steps] == ["retrieve", "rerank", "rerank", "generate", "vote"]
    # The second window begins at the head and takes along what the first one put in front.
    assert [len(s.shown) for s in result.steps] == [0, 20, 20, 1, 0]
    assert result.steps[3].shown == ("24",)


def test_a_source_is_asked_for_as_many_as_are_kept() -> None:
    many = [Passage(id=str(i), title="", text=f"Text {i}.") for i in range(25)]
    result, *_ = ask(["a", "b"], many, pool="Wiki@3,Wiki@22", depth=2)
    assert [len(s.shown) for s in result.steps] == [0, 3, 22, 0]


def test_the_hybrid_concatenates_all_sources() -> None:
    words = " ".join(f"w{i}" for i in range(150))
    result, _, retriever = ask([words, "a", "b"], pool="HB,PK@1")
    [first, second] = [s for s in result.steps if s.name == "generate"]
    assert len(first.shown) == 2 + len(FOUND)  # the background document in chunks of 100 words
    assert first.shown[2:] == ("1", "2", "3", "4")
    assert second.shown == first.shown[:1]
    assert [p.id for p in first.evidence] == ["1", "2", "3", "4"]
    assert len(retriever.queries) == 1


def test_what_finds_nothing_answers_closed_book_and_compresses_nothing() -> None:
    result, reader, _ = ask(["a", "a"], [], pool="Wiki@CP,ReFree")
    assert [s.name for s in result.steps] == ["retrieve", "generate", "generate", "vote"]
    assert reader.requests[0].prompt == reader.requests[1].prompt


def test_a_summary_is_cut_at_200_words() -> None:
    result, *_ = ask([" ".join(["word"] * 250), "a"], pool="Wiki@CP")
    assert len((result.steps[1].output or "").split()) == 200


class Web(ScriptedRetriever):
    name = "web"


def test_other_sources_are_asked_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(lambda query: [Passage(id="http://x", title="X", text="Web.")])
    monkeypatch.setattr(_ensemble, "configure", lambda text: {"SE": web})
    result, _, retriever = ask(["a", "b"], pool="SE@1&Wiki@1,SE", sources="SE=searxng:http://h")
    assert web.queries == retriever.queries == [QUESTION.text]
    assert [(s.output, [h.passage.id for h in s.ranked]) for s in result.steps[:2]] == [
        ("SE", ["http://x"]),
        ("Wiki", ["1", "2", "3", "4"]),
    ]
    assert [s.query for s in result.steps[:2]] == [QUESTION.text] * 2
    assert result.steps[2].shown == ("http://x", "1")


def test_sources_are_built_from_their_names() -> None:
    built = sources.configure("SE=searxng:http://h:8/x, web:two=searxng:http://b")
    assert {name: r.name for name, r in built.items()} == {
        "SE": "searxng:http://h:8/x",
        "web:two": "searxng:http://b/search",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "SE@5"}, "SE in the pool is no source: there are PK, Wiki, HB"),
        ({"pool": "Wiki@"}, "character 6"),
        ({"sources": "SE"}, "give NAME=KIND:WHERE"),
        ({"sources": "SE=nothing:x"}, "no 'nothing' among retrievers"),
        ({"sources": "PK=searxng:http://h"}, "the name PK is reserved"),
        ({"sources": "SE@5=searxng:http://h"}, "is no plain name"),
        ({"sources": "SE=searxng:h"}, "give its address"),
        ({"similarities": "emm=1"}, "similarity 'emm' is unknown"),
        ({"similarities": "em=1,em=2"}, "character 6: expected each similarity once, not em again"),
        ({"similarities": ""}, "similarity '' is unknown"),
        ({"sources": "SE=searxng:http://h,=x"}, "expected the name of a source"),
        ({"sources": "SE=searxng:http://h,SE=searxng:http://h"}, "each source once, not SE again"),
        ({"similarities": "em=nan"}, "must be a number from 0 on"),
        ({"similarities": "em=x"}, "must be a number from 0 on"),
        ({"depth": 0}, "one passage or more"),
        ({"weights": "/no/such/file"}, "cannot be read"),
        ({"encoder": "/no/such/folder"}, "no model folder"),
    ],
)
def test_options_that_are_no_use_are_told_before_any_run(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        eor.build(**options)


def test_similarities_are_weighed() -> None:
    table = {
        ("Tarn", "V. T."): ENTAILS,
        ("V. T.", "Tarn"): NEUTRAL,
        ("Tarn", "Miskel"): NEUTRAL,
        ("Miskel", "Tarn"): NEUTRAL,
        ("V. T.", "Miskel"): ENTAILS,
        ("Miskel", "V. T."): ENTAILS,
        **{(same, same): ENTAILS for same in ("Tarn", "V. T.", "Miskel")},
    }
    judge = ScriptedEntailment(table)
    replies = ["Tarn", "V. T.", "Miskel"]
    pool = "ReFree,Wiki@1,Wiki@2"
    result, *_ = ask(replies, entailment=judge, similarities="em=1,nli=3", pool=pool)
    said = ballot(result)
    assert said["shares"] == {"em": 0.25, "nli": 0.75}
    assert said["similarities"]["nli"][0] == pytest.approx([1, 0.5, 0])
    assert said["scores"] == pytest.approx([0.75 * 0.25, 0.75 * 0.75, 0.75 * 0.5])
    assert result.answer == "V. T."
    [asked] = judge.calls
    assert {statement.question for statement in asked} == {""}


def test_a_similarity_without_its_model_is_left_out_and_named() -> None:
    result, *_ = ask(
        ["a", "b"], similarities="em=1,bertscore=2,nli=1,nli_question=0", pool="ReFree,Wiki@1"
    )
    said = ballot(result)
    assert said["shares"] == {"em": 1.0}
    assert said["left_out"] == ["bertscore", "nli"]


def test_an_encoder_is_loaded_as_its_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Likes:
        name = "likes"

        def compare(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.2 if one[0] == other[0] else -0.2 for other in texts] for one in texts]

    def load(**options: Any) -> Likes:
        asked.append(options)
        return Likes()

    monkeypatch.setattr(bertscore, "build", load)
    _similarities.encoder.cache_clear()
    options = {"encoder": "folder", "layer": 40, "idf": True, "pool": "ReFree,Wiki@1,Wiki@2"}
    result, *_ = ask(["x", "ya", "yb"], similarities="bertscore=1", **options)
    assert result.answer == "ya"
    assert ballot(result)["similarities"]["bertscore"][1] == [0, 1, 1]  # never outside [0, 1]
    ask(["x", "ya", "yb"], similarities="bertscore=1", **options)
    assert asked == [{"model": "folder", "layer": 40, "idf": True}]
    _similarities.encoder.cache_clear()


def test_without_any_model_the_first_of_the_pool_wins() -> None:
    result, *_ = ask(["a", "b", "b"], similarities="nli=1", pool="ReFree,Wiki@1,Wiki@2")
    assert (result.answer, ballot(result)["shares"]) == ("a", {})


def test_empty_answers_are_like_none() -> None:
    result, *_ = ask(["", "", "b", "b"], pool="ReFree,Wiki@1,Wiki@2,Wiki@3", similarities="exact")
    assert result.answer == "b"
    assert ballot(result)["similarities"]["exact"][0] == [0, 0, 0, 0]


def weights(tmp_path: Path, pool: tuple[str, ...], *values: float, **rule: Any) -> str:
    path = tmp_path / "weights.json"
    kept = weights_file.Weights(
        pool=pool,
        retrievers=values,
        similarities={"exact": 1.0},
        rule=VotingRule(**rule)._asdict(),
    )
    weights_file.save(path, kept)
    return str(path)


def test_a_weights_file_decides(tmp_path: Path) -> None:
    file = weights(tmp_path, ("ReFree", "Wiki@1", "Wiki@2", "Wiki@3"), 0.5, 0.4, 0.05, 0.05)
    pool = "ReFree, Wiki@1, Wiki@2, Wiki@3"
    result, *_ = ask(["A", "B", "B", "B"], pool=pool, weights=file)
    assert (result.answer, ballot(result)["weights"]) == ("A", [0.5, 0.4, 0.05, 0.05])


def test_a_weights_file_for_another_pool_is_refused(tmp_path: Path) -> None:
    file = weights(tmp_path, ("ReFree", "Wiki@1"), 0.5, 0.4)
    with pytest.raises(UsageError, match=r"for the pool ReFree,Wiki@1, not for Wiki@1,ReFree"):
        eor.build(pool="Wiki@1,ReFree", weights=file)


def test_a_weights_file_for_another_rule_is_refused(tmp_path: Path) -> None:
    file = weights(tmp_path, ("ReFree", "PK"), 0.5, 0.4, pooling="max")
    with pytest.raises(UsageError, match="learned with pooling=max, not mean"):
        eor.build(pool="ReFree,PK", weights=file)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"retrievers": [1]},
        {"retrievers": [-1, 1]},
        {"similarities": {"x": 1}},
        {"odd": 1},
    ],
)
def test_a_broken_weights_file_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    file = Path(weights(tmp_path, ("ReFree", "PK"), 0.5, 0.4))
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(UsageError, match=r"weights\.json"):
        eor.build(pool="ReFree,PK", weights=str(file))


def test_calls_are_as_many_as_in_the_cost_table() -> None:
    """R + #CP + 1 for PK, and one for each reranked list of up to 20."""

    def say(request: GenerationRequest) -> str:
        return "[1] > [2]" if "Rank the" in task(request) else "x"

    pool = "Wiki@2,Wiki@2@CP,PK,HB@RR@2,HB@RR@2@CP,ReFree"
    _, reader, retriever = ask(say, pool=pool)
    assert len(reader.requests) == 6 + 2 + 1 + 1
    assert len(retriever.queries) == 1


def test_a_failure_keeps_the_steps_before_it() -> None:
    replies: list[Reply] = ["a", ReaderError("broken")]
    retriever = ScriptedRetriever({QUESTION.text: FOUND})
    workflow = Workflow("eor", eor.build(pool="Wiki@1,PK"), {})
    result = run(workflow, QUESTION, Deps(reader=Talker(replies), retriever=retriever))
    assert result.status == "failed"
    assert [s.name for s in result.steps] == ["retrieve", "generate"]
