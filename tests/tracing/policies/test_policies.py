"""Each policy against moments worked by hand, and all of them through a real workflow."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from hopscope.api.spending import policy
from hopscope.runtime import components
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.ports import Moment
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Decision, Exchange, Hit, Question
from hopscope.tracing import policies
from hopscope.tracing.learned.calibration import Calibration
from hopscope.tracing.learned.classifier_file import ClassifierFile, WordModel
from hopscope.tracing.learned.forest import Forest, Tree
from hopscope.tracing.learned.value_file import Bin, Head, OtherPrice, StageModel, ValueFile
from hopscope.tracing.meters.grogu.key_entropy import key_entropy
from hopscope.tracing.policies.value import ValuePolicy
from hopscope.tracing.signals.draft import request
from hopscope.tracing.signals.gathering import NAMES, SIGNALS, STAGES, gather, signals
from hopscope.tracing.wrappers.cached import CachedReader
from tests.fakes import ScriptedReader, passage, reply, scored, step

ASKED = Question(text="Where was the director of Alba born?")
CLOSED_BOOK = request(Moment(ASKED), ()).prompt


def moment(*found: Sequence[str]) -> Moment:
    """Before the retrieval that follows those that brought these passages."""
    steps, evidence = [], ()
    for index, keys in enumerate(found):
        evidence += tuple(passage(key) for key in keys)
        ranked = tuple(Hit(passage=passage(k), score=9.0 - i) for i, k in enumerate(keys))
        steps.append(step(index, keys, query="q", ranked=ranked, evidence=evidence))
    return Moment(ASKED, tuple(steps), evidence)


def decide(spec: str, at: Moment, reader: ScriptedReader | None = None) -> Decision:
    provided = {"workflow": "ircot", "reader_name": "scripted"}
    policy = components.named(policies, Spec.parse(spec), provided=provided)()
    return policy.decide(at, reader or ScriptedReader())


def sure(p: float, text: str = "Lisbon") -> ScriptedReader:
    """Drafts twice, with this probability of each of two tokens; without documents the second one
    is less sure."""
    drafted = reply(text, (log(p), log(p)), entropies=(1 - p, (1 - p) / 2))
    return ScriptedReader([[drafted], [drafted]], [scored((1 - p, 1.0))])


START, ONE, TWO = moment(), moment(["a"]), moment(["a"], ["b"])


@pytest.mark.parametrize(
    ("spec", "at", "retrieves"),
    [
        ("never", START, False),
        ("native", TWO, True),
        ("fixed:0", START, False),
        ("fixed:1", START, True),
        ("fixed:1", ONE, False),
        ("random:0", START, False),
        ("random:1", START, True),
        ("repeat", START, True),
        ("tasr", START, True),
        ("grogu", START, True),
    ],
)
def test_policies_that_ask_nothing(spec: str, at: Moment, retrieves: bool) -> None:
    """The scripted reader has no reply: a question would raise."""
    assert decide(spec, at).retrieve is retrieves


@pytest.mark.parametrize(
    ("spec", "p", "retrieves"),
    [
        ("margin:0.7", 0.86, False),  # 2 * 0.86 - 1 = 0.72
        ("margin:0.7", 0.84, True),  # 0.68
        ("entropy:0.3", 0.5, True),  # (0.5 + 0.25) / 2 = 0.375
        ("entropy:0.4", 0.5, False),
        ("maxentropy:0.4", 0.5, True),
        ("maxentropy:0.6", 0.5, False),
        ("logprob:-0.5", 0.5, True),  # ln 0.5 = -0.69
        ("logprob:-0.8", 0.5, False),
        ("flare:0.8", 0.79, True),
        ("flare:0.8", 0.81, False),
    ],
)
def test_gates_retrieve_while_the_reader_is_unsure(spec: str, p: float, retrieves: bool) -> None:
    decision = decide(spec, START, sure(p))
    assert decision.retrieve is retrieves
    assert len(decision.signals) == 1


@pytest.mark.parametrize(
    ("spec", "p", "told"),
    [
        ("margin:0.7", 0.86, "margin 0.720 ≥ 0.7"),
        ("margin:0.7", 0.84, "margin 0.680 < 0.7"),
        ("margin:0.5", 0.75, "margin 0.500 ≥ 0.5"),
        ("entropy:0.3", 0.5, "entropy 0.375 > 0.3"),
        ("entropy:0.4", 0.5, "entropy 0.375 ≤ 0.4"),
    ],
)
def test_gates_say_on_which_side_of_the_threshold_they_are(spec: str, p: float, told: str) -> None:
    """A margin above the threshold was said to be "not beyond" it."""
    assert decide(spec, START, sure(p)).reason == told


@pytest.mark.parametrize("spec", ["margin", "entropy", "maxentropy", "logprob", "flare"])
def test_gates_say_what_a_reader_does_not_tell(spec: str) -> None:
    mute = ScriptedReader([[reply("Lisbon", (), tokens=("Lisbon",))]])
    with pytest.raises(ReaderError, match="scripted gives no"):
        decide(spec, START, mute)


@pytest.mark.parametrize(
    ("then", "now", "retrieves"),
    [("Lisbon", "the lisbon.", False), ("Lisbon", "Porto", True), ("", "", True)],
)
def test_repeat_compares_normalised_drafts(then: str, now: str, retrieves: bool) -> None:
    reader = ScriptedReader([[reply(now)], [reply(then)]])
    assert decide("repeat", ONE, reader).retrieve is retrieves
    assert [r.prompt.shown for [r] in reader.generated] == [("a",), ()]


def test_a_draft_that_the_run_has_made_already_costs_nothing() -> None:
    generation = reply("Lisbon")
    known = Exchange(request=request(ONE, ONE.evidence), generations=(generation,), seconds=0.1)
    asked = step(1, kind="generate", evidence=ONE.evidence, exchanges=(known,))
    reader = ScriptedReader([[generation]])
    assert not decide("repeat", ONE._replace(steps=(*ONE.steps, asked)), reader).retrieve
    assert [r.prompt.shown for [r] in reader.generated] == [()], "only the one without evidence"


@pytest.mark.parametrize(("p", "retrieves"), [(0.7, False), (0.6, True)])
def test_tasr_wants_both(p: float, retrieves: bool) -> None:
    assert decide("tasr:0.25", ONE, sure(p)).retrieve is retrieves  # margins 0.4 and 0.2


def test_tasr_takes_a_calibration(tmp_path: Path) -> None:
    file = tmp_path / "isotonic.json"
    its = {"workflow": "ircot", "reader": "scripted"}
    file.write_text(Calibration(**its, scores=(0.0, 1.0), values=(0.0, 0.5)).model_dump_json())
    build = partial(
        components.load(policies, "tasr").build, workflow="ircot", reader_name="scripted"
    )
    decision = build(threshold=0.25, calibration=file).decide(ONE, sure(0.7))
    assert decision.signals["margin"] == pytest.approx(0.2)
    assert decision.retrieve
    file.write_text(json.dumps({**its, "scores": [1, 0], "values": [0, 1]}))
    with pytest.raises(UsageError, match="ascend"):
        build(calibration=file)


@pytest.mark.parametrize(("said", "retrieves"), [(" Yes.", False), ("No", True), ("", True)])
def test_self_report_believes_a_yes(said: str, retrieves: bool) -> None:
    reader = ScriptedReader([[reply(said)]])
    assert decide("self_report", ONE, reader).retrieve is retrieves


@pytest.mark.parametrize(("after", "retrieves"), [(0.5, False), (0.9, True)])
def test_grogu_stops_when_the_last_step_gained_little(after: float, retrieves: bool) -> None:
    """Confidence is the negative mean entropy: without evidence -1, after the step -(1 - after)."""

    def drafted(entropy: float) -> list:
        return [reply("Lisbon", (-0.1,), entropies=(entropy,))]

    reader = ScriptedReader([drafted(1.0), drafted(1 - after)])
    decision = decide("grogu:0.6", ONE, reader)
    assert decision.signals["grogu_gain"] == pytest.approx(after)
    assert decision.retrieve is retrieves


def test_a_draw_depends_on_the_question_and_the_step_alone() -> None:
    drawn = [decide("random:0.5", ONE).reason for _ in range(2)]
    assert drawn[0] == drawn[1] != decide("random:0.5", START).reason


def test_signals_are_finite_named_and_those_there_are() -> None:
    known = signals(TWO, sure(0.7))
    assert set(known) <= set(NAMES)
    assert known["repeats"] == 1
    assert known["entropy_change"] == 0
    assert known["least_prob"] == pytest.approx(0.7)
    assert (known["top_score"], known["new_share"]) == (9.0, 1.0)
    assert "score_gap" not in known, "one hit has no gap"
    assert known["key_entropy"] == pytest.approx(0.15), "of the token that the documents change"
    assert known["key_entropy_change"] == 0
    mute = ScriptedReader([[reply("x", (), tokens=("x",))]])
    assert not {"entropy", "logprob", "repeats"} & set(signals(START, mute))


def test_each_stage_asks_for_no_more_than_it_says() -> None:
    """A draft; then the draft before it, and one score for both, as they are the same."""
    reader = sure(0.7)
    remembering = CachedReader(reader)
    asked = []
    for stage in STAGES:
        known = gather(stage, TWO, remembering)
        assert set(known) <= set(SIGNALS[stage])
        asked.append((len(reader.generated), len(reader.scored)))
    assert asked == [(0, 0), (1, 0), (2, 1)]


def test_key_entropy_without_documents_takes_no_second_pass() -> None:
    """Of the tokens above 0.05 nats."""
    drafted = reply("Lisbon", (-0.1,) * 3, entropies=(0.2, 0.01, 0.4))
    asks_nothing = ScriptedReader()
    found = key_entropy(CLOSED_BOOK, drafted, asks_nothing, grounded=False)
    assert found == pytest.approx(0.3)


@pytest.mark.parametrize("entropies", [(), (0.2,)])
def test_key_entropy_is_not_made_up(entropies: Sequence[float]) -> None:
    """The reader tells no entropies with the documents, or scores other tokens without them."""
    drafted = reply("Lisbon", (-0.1, -0.1), entropies=(0.2, 0.1) if entropies else ())
    reader = ScriptedReader(scores=[scored(entropies)])
    assert key_entropy(CLOSED_BOOK, drafted, reader, grounded=True) is None


STUMP = Tree(
    feature=(0, -1, -1), threshold=(0.5, 0, 0), left=(1, 0, 0), right=(2, 0, 0), value=(0, 0.1, 0.6)
)


def value_file(tmp_path: Path, doubt: float = 1.0, **changes: object) -> Path:
    """Predicts a gain of 0.5 from free signals, at 100 tokens. Where that is nearer to the price
    than `doubt` a draft is made, and the gain is 0.1 where `draft_found` is 0 and 0.6 where it is
    1."""
    bins = (
        Bin(score=0.0, gain=0.0, low=-0.1, high=0.1),
        Bin(score=1.0, gain=1.0, low=0.9, high=1.1),
    )
    free = StageModel(
        stage="free", gain=Forest(start=0.5), cost=Forest(start=100.0), bins=bins, doubt=doubt
    )
    drafted = StageModel(
        stage="draft",
        gain=Forest(start=0.0, trees=(STUMP,)),
        cost=Forest(start=100.0),
        bins=bins,
    )
    head = Head(stages=(free, drafted), medians={"draft_found": 1.0})
    fields = {
        "workflow": "ircot",
        "reader": "scripted",
        "utility": "correctness",
        "budget": 100.0,
        "price": 0.002,
        "signals": ("draft_found",),
        "heads": (head,),
    }
    path = tmp_path / "policy.json"
    path.write_text(ValueFile.model_validate({**fields, **changes}).model_dump_json())
    return path


def test_value_weighs_gain_against_price(tmp_path: Path) -> None:
    decision = decide(f"value:{value_file(tmp_path)}", START, sure(0.9))
    assert (decision.gain, decision.cost, decision.price) == (pytest.approx(0.1), 100.0, 0.002)
    assert decision.low == pytest.approx(0.0)
    assert not decision.retrieve, "0.1 is less than 0.002 * 100"
    assert decide(f"value:{value_file(tmp_path, price=0.0005)}", START, sure(0.9)).retrieve


@pytest.mark.parametrize(("doubt", "drafts"), [(0.29, 0), (0.31, 1)])
def test_value_pays_for_a_draft_only_in_doubt(tmp_path: Path, doubt: float, drafts: int) -> None:
    """The gain of 0.5 is 0.3 above its price."""
    reader = sure(0.9)
    decision = decide(f"value:{value_file(tmp_path, doubt)}", START, reader)
    assert len(reader.generated) == drafts
    assert decision.retrieve == (not drafts)
    assert decision.stage == ("draft" if drafts else "free")
    assert ("draft_words" in decision.signals) is bool(drafts)
    assert decision.gain == pytest.approx(0.1 if drafts else 0.5)


def test_value_draws_one_of_two_prices_for_a_question(tmp_path: Path) -> None:
    """The same one at each decision about it, and the reason says so."""
    [head] = ValueFile.model_validate_json(value_file(tmp_path, 0.0).read_bytes()).heads
    prices = set()
    for seed in range(20):
        other = OtherPrice(share=0.3, seed=seed, price=0.008, heads=(head,))
        policy = f"value:{value_file(tmp_path, 0.0, other=other)}"
        decision = decide(policy, START, sure(0.9))
        assert decision == decide(policy, START, sure(0.9))
        share = "30%" if decision.price == 0.008 else "70%"
        assert decision.reason.endswith(f", at the price drawn for {share} of the questions")
        assert decision.retrieve == (decision.price == 0.002)
        prices.add(decision.price)
    assert prices == {0.002, 0.008}


def test_of_two_equal_prices_the_draw_decides(tmp_path: Path) -> None:
    """They may have other predictions: a share is told by the draw, not by the price."""
    [head] = ValueFile.model_validate_json(value_file(tmp_path, 0.0).read_bytes()).heads
    [free, drafted] = head.stages
    keen = free.model_copy(update={"gain": Forest(start=0.9)})
    heads = (head.model_copy(update={"stages": (keen, drafted)}),)
    drawn = set()
    for seed in range(20):
        other = OtherPrice(share=0.3, seed=seed, price=0.002, heads=heads)
        decision = decide(f"value:{value_file(tmp_path, 0.0, other=other)}", START, sure(0.9))
        taken = other.takes(ASKED.text)
        assert decision.gain == pytest.approx(0.9 if taken else 0.5)
        assert f"drawn for {30 if taken else 70}% of the questions" in decision.reason
        drawn.add(taken)
    assert drawn == {True, False}


@pytest.mark.parametrize(
    "text", ["", "???", "東京はどこ", "\u0130stanbul\u2019da", "a\ud800b", "\x00"]
)
def test_any_question_has_a_price_and_signals_from_its_words(tmp_path: Path, text: str) -> None:
    """Also one without words, and one that cannot be stored."""
    [head] = ValueFile.model_validate_json(value_file(tmp_path).read_bytes()).heads
    other = OtherPrice(share=0.5, seed=0, price=0.1, heads=(head,))
    words = WordModel(names=("needed",), intercepts=(1.5,), weights={"東京はどこ": (0.5,)})
    file = ValueFile.model_validate_json(
        value_file(tmp_path, other=other, words=words).read_bytes()
    )
    assert file.told(text) == {"needed": 2.0 if text == "東京はどこ" else 1.5}
    assert {file.drawn(text).price for _ in range(3)} in ({0.1}, {0.002})


def test_value_goes_by_the_words_of_the_question(tmp_path: Path) -> None:
    """The stump predicts a gain of 0.1 for few retrievals needed, else of 0.6."""
    [head] = ValueFile.model_validate_json(value_file(tmp_path).read_bytes()).heads
    by_words = head.model_copy(update={"stages": head.stages[1:]})
    for needed, gain in ((0.4, 0.1), (0.9, 0.6)):
        words = WordModel(names=("needed",), intercepts=(needed,), weights={})
        file = value_file(tmp_path, signals=("needed",), heads=(by_words,), words=words)
        decision = decide(f"value:{file}", START, sure(0.9))
        assert decision.signals["needed"] == needed
        assert decision.gain == pytest.approx(gain)


def classifier_file(tmp_path: Path, **changes: object) -> Path:
    """Says how often to retrieve by whether "director of" is asked for."""
    fields = {
        "workflow": "ircot",
        "reader": "scripted",
        "classes": (0, 1, 2),
        "intercepts": (0, 0, 0),
        "weights": {"director of": (0.0, 5.0, 0.0)},
    }
    path = tmp_path / "classifier.json"
    path.write_text(ClassifierFile.model_validate({**fields, **changes}).model_dump_json())
    return path


def calibration_file(tmp_path: Path, **changes: object) -> Path:
    fields = {"workflow": "ircot", "reader": "scripted", "scores": (0, 1), "values": (0, 1)}
    path = tmp_path / "calibration.json"
    path.write_text(Calibration.model_validate({**fields, **changes}).model_dump_json())
    return path


@pytest.mark.parametrize(
    ("learned", "spec"),
    [
        (value_file, "value:{}"),
        (classifier_file, "classifier:{}"),
        (calibration_file, "tasr:0.25,calibration={}"),
    ],
)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workflow": "flare"}, r"workflow flare and does not fit ircot"),
        ({"reader": "other@1"}, r"reader other@1 and does not fit scripted"),
    ],
)
def test_a_policy_for_others_is_refused_with_both_names(
    tmp_path: Path, learned: Callable[..., Path], spec: str, changes: dict[str, object], told: str
) -> None:
    assert policy(
        Spec.parse(spec.format(learned(tmp_path))), workflow="ircot", reader_name="scripted"
    )
    with pytest.raises(UsageError, match=told):
        policy(
            Spec.parse(spec.format(learned(tmp_path, **changes))),
            workflow="ircot",
            reader_name="scripted",
        )


@pytest.mark.parametrize(
    ("learned", "spec"),
    [
        (value_file, "value:{}"),
        (classifier_file, "classifier:{}"),
        (calibration_file, "tasr:0.25,calibration={}"),
    ],
)
def test_other_prompts_than_those_of_the_runs_are_warned_of(
    tmp_path: Path, learned: Callable[..., Path], spec: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Only where both are known: files of earlier editions do not tell."""
    for known, here in (((), "default"), (("mine#ab12",), None), (("mine#ab12",), "mine#ab12")):
        path = learned(tmp_path, prompts=known)
        text = Spec.parse(spec.format(path))
        assert policy(text, workflow="ircot", reader_name="scripted", prompts=here)
        assert not caplog.records
    assert policy(text, workflow="ircot", reader_name="scripted", prompts="default")
    [record] = caplog.records
    assert "runs with the prompts mine#ab12, and these are with the prompts default" in str(
        record.getMessage()
    )
    path = learned(tmp_path, prompts=("default", "mine#ab12"))
    text = Spec.parse(spec.format(path))
    assert policy(text, workflow="ircot", reader_name="scripted", prompts="default")
    assert len(caplog.records) == 1, "it has learned from such runs, too"


def test_prompts_do_not_change_the_name_of_a_policy(tmp_path: Path) -> None:
    """It tells what decides."""
    names = set()
    for known in ((), ("mine#ab12",)):
        text = f"value:{value_file(tmp_path, prompts=known)}"
        found = policy(Spec.parse(text), workflow="ircot", reader_name="scripted")
        assert isinstance(found, ValuePolicy)
        names.add(found.name)
    assert len(names) == 1


@pytest.mark.parametrize("spec", ["classifier:{}", "tasr:0.25,calibration={}"])
def test_a_policy_of_another_kind_is_refused_with_how_to_make_one(
    tmp_path: Path, spec: str
) -> None:
    with pytest.raises(UsageError, match=r"kind: choose .*`hopscope budget fit .*--kind"):
        policy(
            Spec.parse(spec.format(value_file(tmp_path))), workflow="ircot", reader_name="scripted"
        )


def test_value_does_with_the_signals_there_are(tmp_path: Path) -> None:
    """A reader that tells no probabilities: what is not known is the median that was learned."""
    mute = ScriptedReader([[reply("Lisbon", (), tokens=("Lisbon",))]])
    decision = decide(f"value:{value_file(tmp_path)}", START, mute)
    assert not {"logprob", "margin", "entropy"} & set(decision.signals)
    assert decision.gain == pytest.approx(0.1)
    unknown = value_file(tmp_path, signals=("margin",))
    [head] = ValueFile.model_validate_json(unknown.read_bytes()).heads
    known = head.model_copy(update={"medians": {"margin": 0.9}})
    mute = ScriptedReader([[reply("Lisbon", (), tokens=("Lisbon",))]])
    file = value_file(tmp_path, signals=("margin",), heads=(known,))
    assert decide(f"value:{file}", START, mute).gain == pytest.approx(0.6), "as for a margin of 0.9"


def test_a_policy_file_that_is_none_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(UsageError, match="hopscope budget fit"):
        decide(f"value:{path}", START)
    path.write_text('{"version": 1}')
    with pytest.raises(UsageError, match=r"policy .*p.json: "):
        decide(f"value:{path}", START)


def of_stage(**changes: object) -> Callable[[dict[str, Any]], None]:
    return lambda file: file["heads"][0]["stages"][1].update(changes)


def of_tree(**changes: object) -> Callable[[dict[str, Any]], None]:
    return lambda file: file["heads"][0]["stages"][1]["gain"]["trees"][0].update(changes)


def of_other(**changes: object) -> Callable[[dict[str, Any]], None]:
    def change(file: dict[str, Any]) -> None:
        mixed = {"share": 0.5, "seed": 0, "price": 0.1, "heads": file["heads"]}
        file["other"] = mixed | changes

    return change


def two_bins(one: float, two: float) -> list[dict[str, float]]:
    return [{"score": each, "gain": 0.0, "low": 0.0, "high": 0.0} for each in (one, two)]


SPOILT: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (of_tree(feature=[1, -1, -1]), "a signal that the file does not name"),
    (of_tree(feature=[-2, -1, -1]), "an input that is none"),
    (of_tree(left=[0, 0, 0]), "do not follow"),
    (of_stage(bins=two_bins(0.5, 0.5)), "must ascend"),
    (of_stage(bins=two_bins(1.0, 0.0)), "must ascend"),
    (of_stage(bins=[]), "at least 1"),
    (of_other(share=0.0), "share: give more than 0"),
    (of_other(share=1.0), "share: give less than 1"),
    (of_other(share=float("nan")), "share: give a finite number"),
    (of_other(heads=[]), "at least 1"),
    (lambda file: file.update(price=float("inf")), "price: give a finite number"),
    (
        lambda file: file.update(words={"names": ["a"], "intercepts": [], "weights": {}}),
        "one weight for each name",
    ),
]


@pytest.mark.parametrize(("spoil", "told"), SPOILT)
def test_a_value_file_that_cannot_decide_is_refused_before_a_run(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None], told: str
) -> None:
    path = value_file(tmp_path)
    file = json.loads(path.read_text())
    spoil(file)
    path.write_text(json.dumps(file))
    with pytest.raises(UsageError, match=rf"policy .*p.*json: .*{told}.*hopscope budget fit"):
        decide(f"value:{path}", START, sure(0.9))


def test_a_value_file_of_an_earlier_edition_decides_as_before(tmp_path: Path) -> None:
    """It has no words, no second price and no prompts."""
    path = value_file(tmp_path)
    file = json.loads(path.read_text())
    before = decide(f"value:{path}", START, sure(0.9))
    for name in ("words", "other", "prompts", "promise", "always", "cached", "plans", "learned"):
        del file[name]
    path.write_text(json.dumps(file))
    assert decide(f"value:{path}", START, sure(0.9)) == before


@pytest.mark.parametrize(("needed", "allowed"), [(0, 0), (1, 1), (2, 9)])
def test_the_classifier_reads_the_question_only(tmp_path: Path, needed: int, allowed: int) -> None:
    weights = {"director of": tuple(5.0 * (each == needed) for each in (0, 1, 2))}
    path = classifier_file(tmp_path, weights=weights)
    chosen = [decide(f"classifier:{path}", at).retrieve for at in (START, ONE, TWO)]
    assert chosen == [at < allowed for at in range(3)]
    _, probability = ClassifierFile.model_validate_json(path.read_bytes()).classify(ASKED.text)
    assert probability == pytest.approx(exp(5) / (exp(5) + 2))


def test_a_tree_whose_nodes_go_round_is_refused() -> None:
    with pytest.raises(ValueError, match="do not follow"):
        Tree(feature=(0,), threshold=(0.5,), left=(0,), right=(0,), value=(1.0,))


def test_every_policy_says_what_it_is() -> None:
    for name in components.names(policies):
        text = components.load(policies, name).__doc__ or ""
        assert text.partition("\n\n")[0].strip().endswith("."), name
