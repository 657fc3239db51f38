"""Presets are options by another name: every command and a session take them, a user's own options
precede them, and one that would set nothing is refused."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import hopscope
from hopscope import workflows
from hopscope.api import presets
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credit_runs import CreditArguments, Defaults
from hopscope.api.presets import Preset, Presets
from hopscope.api.spending import Spending
from hopscope.lab.experiments.arms import arms
from hopscope.lab.suites import worlds
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines.expression_parser import parse_pool
from hopscope.runtime.prompting import loading
from hopscope.tracing import meters
from tests.cli.experiment_example import call
from tests.fakes import ScriptedReader

QUESTION = "What is the headquarters city of the company that employs Elsa Wilby?"
EOR_RETRIEVERS = 16
ASKED = ["--gold", "Grand Rovmar", "--samples", "1", "--meter", "seper", "-w", "naive"]


def preset(name: str = "own", **parts: dict[str, dict[str, Any]]) -> Presets:
    return Presets((Preset(name=name, about="a test's", source="none", **parts),))


@pytest.mark.parametrize("name", presets.names())
def test_every_shipped_preset_names_meters_workflows_and_options_that_there_are(name: str) -> None:
    found = presets.load(name)
    assert found.about
    assert found.source
    assert found.options
    for package, parts in ((meters, found.meters), (workflows, found.workflows)):
        for part in parts:
            build = components.load(package, part).build
            texts = preset(**{package.__name__.rpartition(".")[2]: {part: parts[part]}})
            given = (
                texts.of_workflow(part)
                if package is workflows
                else {key.partition(".")[2]: text for key, text in texts.of_meters([part]).items()}
            )
            if prompts := given.pop("prompts", None):
                assert loading.load(prompts).replaced
            parsed = components.parse_options(build, given) | {"prompts": prompts}
            assert {key: parsed[key] for key in parts[part]} == parts[part]


def test_a_preset_sets_options_only_of_the_meters_and_workflows_in_use() -> None:
    both = preset(meters={"seper": {"samples": 3}}, workflows={"ircot": {"k": 7}})
    assert both.of_meters(["seper_hard", "grogu"]) == {"seper.samples": "3"}
    assert both.of_meters(["grogu"]) == {}
    assert (both.of_workflow("ircot"), both.of_workflow("flare")) == ({"k": "7"}, {})
    both.check(meters=["grogu"], workflows=["ircot"])
    with pytest.raises(UsageError, match=r"preset own sets options of seper, ircot; .* are grogu"):
        both.check(meters=["grogu"], workflows=[])


def test_the_later_of_two_presets_precedes() -> None:
    one, two = preset(workflows={"ircot": {"k": 7}}), preset(workflows={"ircot": {"k": 8}})
    assert Presets((*one.chosen, *two.chosen)).of_workflow("ircot") == {"k": "8"}


@pytest.mark.parametrize(
    ("text", "options", "k", "expected"),
    [
        ("ircot", {}, None, 7),
        ("ircot", {}, 5, 5),
        ("ircot", {"k": "4"}, None, 4),
        ("ircot:k=3", {"k": "4"}, 5, 3),
    ],
)
def test_what_the_user_says_of_a_workflow_precedes_a_preset(
    text: str, options: dict[str, str], k: int | None, expected: int
) -> None:
    chosen = preset(workflows={"ircot": {"k": 7}})
    [arm] = arms([text], options, presets=chosen, corpus="hopland", k=k, spend=Spending())
    assert arm.settings["options"]["k"] == expected  # type: ignore[index,call-overload]


@pytest.mark.parametrize("name", presets.names())
def test_the_workflows_of_every_shipped_preset_can_be_built(name: str) -> None:
    found = presets.load(name)
    for workflow in found.workflows:
        # The pool of EoR needs a model that is not in the package: its grammar is what is tested.
        if workflow == "eor":
            pool = parse_pool(str(found.options["eor.pool"]))
            assert len(pool) == EOR_RETRIEVERS
        else:
            of = Presets((found,))
            [arm] = arms([workflow], {}, presets=of, corpus="hopland", k=None, spend=Spending())
            given = arm.settings["options"]
            assert isinstance(given, dict)
            wanted = dict(found.workflows[workflow])
            prompts = str(wanted.pop("prompts", ""))
            assert given.items() >= wanted.items()
            assert str(given.get("prompts", "")).partition("#")[0] == prompts


@pytest.mark.usefixtures("workers_that_start_quickly")
def test_run_eval_credit_and_a_session_measure_by_the_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = ["--db", str(tmp_path / "runs.db")]
    by = ["--preset", "seper-paper"]

    def limit(shown: dict[str, Any]) -> tuple[Any, Any]:
        settings = shown["appraisal"]["settings"]
        return settings.get("seper.context_words"), settings.get("seper.max_tokens")

    code, out, err = call(capsys, "run", QUESTION, *ASKED, *by, *db, "--json")
    assert code == 0, err
    assert limit(json.loads(out)) == (512, 512)
    # A run is measured again as it was; what the user says precedes.
    code, out, _ = call(capsys, "credit", *db, "-o", "seper.context_words=9", "--json")
    assert (code, limit(json.loads(out))) == (0, (9, 512))

    small = ["--limit", "1", "--samples", "1", "--meter", "seper", "-w", "naive", "--name", "e"]
    code, out, err = call(capsys, "eval", "hopland:test", *small, *by, *db, "--json")
    assert code == 0, err
    with hopscope.Session(
        store=tmp_path / "runs.db",
        samples=1,
        meters=["seper"],
        presets=["seper-paper"],
        workflow="naive",
    ) as session:
        options = session.store.experiments.find("e").settings["options"]
        assert options["seper.context_words"] == "512"
        run = session.ask(QUESTION, gold="Grand Rovmar", options={"seper.max_tokens": 8})
        levels = [c for c in session.store.credits(run.id) if c.rule == "level"]
        for level in levels:
            assert "max_tokens=8" in level.measurement.estimator
            assert "context_words=512" in level.measurement.estimator


def test_credit_takes_the_runs_own_options_then_the_preset_then_the_users() -> None:
    given = CreditArguments(
        rules=None, meters=("seper",), corpus=None, reader=None, thinking=None, entailment=None,
        samples=None, seed=None, options={"seper.max_tokens": "32"},
        counterfactual=CounterfactualName.empty, mode=Mode.frozen, over=Over.steps, golds=(),
        presets=Presets.named(["seper-paper"]),
    )  # fmt: skip
    own = {"seper.context_words": "9", "seper.bound": "0.5", "seper.max_tokens": "8"}
    options = given.wanted(Defaults(options=own)).options
    assert options["seper.context_words"] == "512"
    assert (options["seper.bound"], options["seper.max_tokens"]) == ("0.5", "32")


def test_credit_by_a_reader_with_prompts_of_its_own_asks_in_them() -> None:
    given = CreditArguments(
        rules=None, meters=("seper",), corpus=None, reader="fid:x", thinking=None, entailment=None,
        samples=None, seed=None, options={}, counterfactual=CounterfactualName.empty,
        mode=Mode.frozen, over=Over.steps, golds=(),
    )  # fmt: skip
    fid = loading.load("fid").name
    assert given.wanted(Defaults()).options == {"seper.prompts": fid}
    measured = Defaults(options={"seper.prompts": "fid-in-prompt"})
    assert given.wanted(measured).options == measured.options
    assert given._replace(reader=None).wanted(Defaults()).options == {}


def test_suites_measure_by_the_preset() -> None:
    inputs = worlds.make(ScriptedReader(), seed=1, limit=1, presets=Presets.named(["seper-paper"]))
    assert (inputs.seper().context_words, inputs.seper(samples=3).samples) == (512, 3)
    assert worlds.make(ScriptedReader(), seed=1, limit=1).seper().context_words == 0


@pytest.mark.parametrize("command", ["run", "eval", "credit", "lab"])
def test_an_unknown_preset_is_refused_with_the_choices(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"run": [QUESTION], "eval": ["hopland:test"], "credit": [], "lab": []}[command]
    db = [] if command == "lab" else ["--db", str(tmp_path / "runs.db")]
    code, _, err = call(capsys, command, *named, "--preset", "nosuch", *db)
    assert code == 2
    assert f"unknown preset 'nosuch': choose from {', '.join(presets.names())}" in " ".join(
        err.split()
    )


def test_a_misspelt_preset_comes_with_the_one_that_is_like_it() -> None:
    with pytest.raises(UsageError, match=r"; did you mean seper-paper\?$"):
        presets.load("seper-papr")


def test_a_preset_of_other_meters_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", QUESTION, "--meter", "grogu", "--preset", "seper-paper"]
    code, _, err = call(capsys, *asked, "--db", str(tmp_path / "runs.db"))
    assert code == 2
    assert "preset seper-paper sets options of seper" in " ".join(err.split())


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "list", "presets", "--json")
    rows = json.loads(out)
    assert (code, [row["name"] for row in rows]) == (0, presets.names())
    text = files(presets.__name__).joinpath("seper-paper.toml").read_text()
    [row] = [row for row in rows if row["name"] == "seper-paper"]
    assert row["summary"] == tomllib.loads(text)["about"]
    assert row["options"]["seper.context_words"] == 512
