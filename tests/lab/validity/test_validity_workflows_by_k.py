"""SePer's table of workflows: what its rows are means of."""

from hopscope.lab.suites import worlds
from hopscope.lab.validity.workflows_by_k import (
    KS,
    MEASURES,
    WORKFLOWS,
    MeasuredQuestion,
    answer,
    build,
    failures,
    shown,
    tabulate,
)
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import (
    GenerationRequest,
    Measurement,
    RunError,
    Usage,
)
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.statistics.over_questions import Estimate
from tests.fakes import passage, run_of, step
from tests.probes import Speaker
from tests.talk import ScriptedRetriever


def answered(said: str, before: float, belief: float, **fields: object) -> MeasuredQuestion:
    """A run of one step that retrieved and cost 10 tokens."""
    spent = Usage(input_tokens=8, output_tokens=2, calls=1)
    steps = (step(0, ["p"], query="q", usage=spent), step(1, usage=spent))
    run = run_of().model_copy(update={"answer": said, "steps": steps, **fields})
    return MeasuredQuestion(run, Measurement(value=before), Measurement(value=belief))


def test_a_row_is_over_the_questions_that_its_workflow_came_to_an_end_on() -> None:
    failed = {"status": "failed", "error": RunError(type="ReaderError", message="no")}
    found = [
        {("naive", 1): answered("gold", 0.25, 1.0), ("naive", 3): answered("x", 0.25, 0.5)},
        {("naive", 1): answered("x", 0.0, 0.5), ("naive", 3): answered("gold", 0, 1, **failed)},
    ]
    one, three = tabulate(found, exact_match.build(), seed=0).rows
    assert (one["workflow"], three["workflow"]) == ("naive, k=1", "naive, k=3")
    assert [_estimate(one[name]).value for name in MEASURES] == [0.5, 0.5, 0.75, 0.625, 1, 20]
    assert [_estimate(three[name]).value for name in MEASURES] == [0, 0, 0.5, 0.25, 1, 20]
    for name in MEASURES:
        assert (_estimate(three[name]).measured, _estimate(three[name]).total) == (1, 2)


def _estimate(cell: object) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


def test_what_a_run_showed_holds_what_it_dropped_later() -> None:
    """Iter-RetGen replaces its evidence: the belief is of all that was brought."""
    run = run_of(["a", "b"], ["c"])
    replaced = run.steps[1].model_copy(update={"evidence": (passage("c"),)})
    run = run.model_copy(update={"steps": (run.steps[0], replaced)})
    assert [p.key for p in shown(run)] == ["a", "b", "c"]


def test_every_workflow_is_asked_with_every_k_and_measured_beside_closed_book() -> None:
    """This reader knows the answer where passage 3 is shown, which only k from 3 on finds."""

    def say(request: GenerationRequest) -> str:
        return "gold" if "3" in request.prompt.shown else "x"

    retriever = ScriptedRetriever(lambda query: [passage(str(i)) for i in range(1, 6)])
    meter = SePer(Speaker(say), lexical.build(), samples=2)
    question = run_of().question
    found = answer(Speaker(say), retriever, meter, question)
    assert list(found) == [(name, k) for name in WORKFLOWS for k in KS]
    for (name, k), row in found.items():
        assert row.run.status == "ok", row.run.error
        assert row.run.options == {"k": k}
        assert row.before.value == 0
        if name in ("naive", "iter_retgen", "ircot"):
            assert row.belief.value == float(k >= 3), name
    assert found["naive", 5].run.answer == "gold"


def test_self_ask_backs_off_by_the_entailment_of_the_suite() -> None:
    """It had none, and every such run failed without a word in the table."""
    retriever = ScriptedRetriever(lambda query: [passage("a")])
    meter = SePer(Speaker(lambda _: "So the final answer is: gold"), lexical.build(), samples=2)
    question = run_of().question
    options = {"self_ask": {"back_off": True}}
    found = answer(meter.reader, retriever, meter, question, options)
    run = found["self_ask", 1].run
    assert run.status == "ok", run.error
    assert [step.name for step in run.steps][-2:] == ["verify", "closed_book"]
    assert failures([found]) == []


def test_a_failed_run_is_told_with_its_error() -> None:
    failed = {"status": "failed", "error": RunError(type="ReaderError", message="no model")}
    found = [{("naive", 1): answered("x", 0, 1, **failed), ("naive", 3): answered("x", 0, 1)}]
    assert failures(found) == ["1 run failed, the first with: no model"]
    notes = tabulate(found, exact_match.build(), *failures(found), seed=0).notes
    assert "1 run failed, the first with: no model" in notes


def test_the_real_reader_goes_through_all_workflows() -> None:
    bench = worlds.make(tiny.build(), seed=7, limit=1)
    [table] = build(bench)
    assert len(table.rows) == len(WORKFLOWS) * len(KS)
    for row in table.rows:
        for name in MEASURES:
            figure = _estimate(row[name])
            assert figure.value is not None
            assert figure.total == 1
        assert _estimate(row["retrievals"]).value
        seper, gain = _estimate(row["seper"]).value, _estimate(row["seper_delta"]).value
        assert seper is not None
        assert gain is not None
        assert 0 <= seper - gain <= 1
    closed = {
        round((_estimate(r["seper"]).value or 0) - (_estimate(r["seper_delta"]).value or 0), 9)
        for r in table.rows
    }
    assert len(closed) == 1
