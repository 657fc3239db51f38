"""Earlier ends of real runs, and the value of information that is learned from them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.lab.budget import fit
from hopscope.lab.budget.ends import NotRepeatedError, ends
from hopscope.lab.budget.stored import Walked, walked
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Question, Run
from hopscope.store.store import Store
from hopscope.tracing.entailments import lexical
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.policies import fixed
from hopscope.tracing.policies.value import FINAL, ValuePolicy
from hopscope.tracing.reports.decisions import explain
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader

READERS = {"search_agent": "tiny:search"}
OPTIONS = {"flare": {"max_tokens": "40"}, "retrobust": {"back_off": "true"}}
LOOPS = ["ircot", "self_ask", "retrobust", "flare", "search_agent"]


@cache
def asked(hops: int) -> Question:
    return [each.question for each in hopland.questions("test") if each.hops == hops][1]


@cache
def ports(reader: str) -> tuple[Deps, MeteredReader]:
    metered = MeteredReader(parts.reader(reader))
    retriever = bm25.from_passages(hopland.corpus(), name="hopland")
    deps = Deps(reader=CachedReader(metered), retriever=retriever, entailment=lexical.build())
    return deps, metered


@cache
def built(name: str) -> Workflow:
    return parts.workflow("self_ask" if name == "retrobust" else name, OPTIONS.get(name, {}))


@cache
def native(name: str, hops: int) -> tuple[Run, Deps, MeteredReader]:
    deps, metered = ports(READERS.get(name, "tiny"))
    return run(built(name), asked(hops), deps), deps, metered


@pytest.mark.parametrize("name", LOOPS)
def test_ends_are_those_of_runs_that_retrieve_less(name: str) -> None:
    """Answer and tokens, to the last one; only what follows a refusal is asked of the model."""
    result, deps, metered = native(name, 2)
    assert result.status == "ok", result.error
    metered.take()
    found = ends(result, built(name), deps.reader, deps.entailment)
    new = metered.take()
    shorter = [
        run(built(name), result.question, replace(deps, policy=fixed.build(k=k)))
        for k in range(len(found) - 1)
    ]
    assert len(shorter) == len(result.retrievals) >= 2
    assert [end.answer for end in found] == [each.answer for each in [*shorter, result]]
    assert [end.tokens for end in found] == [each.usage.tokens for each in [*shorter, result]]
    assert metered.take().calls == 0, "the ends have asked all that the shorter runs ask"
    assert new.calls < sum(each.usage.calls for each in shorter)
    assert all(end.seconds > 0 for end in found)


def test_a_record_that_the_workflow_does_not_repeat_is_refused() -> None:
    result, deps, _ = native("ircot", 2)
    with pytest.raises(NotRepeatedError, match="did not search for"):
        ends(result, built("self_ask"), deps.reader)
    nothing = result.model_copy(update={"question": Question(text="Who?", answers=("x",))})
    with pytest.raises(NotRepeatedError):
        ends(nothing, built("ircot"), deps.reader)


def test_a_draft_stands_in_for_an_end_that_is_not_known() -> None:
    result, deps, _ = native("ircot", 1)
    drafted = walked(result, deps.reader, "correctness").path
    ended = walked(
        result, deps.reader, "correctness", ended=ends(result, built("ircot"), deps.reader)
    ).path
    assert drafted.stops[-1] == ended.stops[-1]
    assert drafted.known == ended.known
    assert drafted.stops[0].tokens == 0 < ended.stops[0].tokens


@cache
def learned(name: str) -> tuple[ValueFile, Walked]:
    """From the path of one question, many times, at the price 0."""
    pytest.importorskip("sklearn")
    result, deps, _ = native(name, 2)
    known = ends(result, built(name), deps.reader, deps.entailment)
    path = walked(result, deps.reader, "correctness", ended=known)
    outcome = fit.learn([path.path] * fit.LEAST, 0.0, fit.Fitting(trees=30))
    return fit.value_file(outcome, utility="correctness"), path


Show = Callable[[Run], str]


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    def show(result: Run) -> str:
        with Store.open(tmp_path / "r.db") as store:
            store.save(result)
        with pytest.raises(SystemExit):
            main(["budget", "explain", result.id, "--db", str(tmp_path / "r.db")])
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("name", ["self_ask", "flare", "search_agent"])
def test_what_is_learned_decides_within_the_loop(name: str, shown: Show) -> None:
    """It goes on where that has gained something, and a high price stops it at once."""
    file, path = learned(name)
    _, deps, _ = native(name, 2)
    stops = [stop.utility for stop in path.path.stops]
    free = run(built(name), asked(2), replace(deps, policy=ValuePolicy(file, "free")))
    decided = [step.decision for step in free.steps if step.decision]
    expected = [max(stops[t:]) > stops[t] for t in range(len(stops) - 1)]
    upto = expected.index(False) + 1 if False in expected else len(expected)
    assert [each.retrieve for each in decided][:upto] == expected[:upto]
    assert all(each.gain is not None and each.cost is not None for each in decided[:upto])
    dear = file.model_copy(update={"price": 1.0})
    stopped = run(built(name), asked(2), replace(deps, policy=ValuePolicy(dear, "dear")))
    assert stopped.retrievals == ()
    assert stopped.answer is not None
    first, *later = explain(stopped, [])
    assert first.sentence.startswith("It did not search, because going on was expected to gain")
    assert {each.decision.reason for each in later} <= {FINAL}
    if name == "flare":
        assert later, "it wrote on and asked again"
    assert "after 0 retrievals: stop  (value:dear)" in shown(stopped)
