"""Retrievers by name on the command line: real parts, the embedded corpus and reader."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hopscope.api import retrieval
from hopscope.api.presets import Presets
from hopscope.api.spending import Spending
from hopscope.cli.main import main
from hopscope.lab.experiments import item_runner, planning
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.retrievers import dense
from hopscope.runtime.types import Passage
from tests import encoders
from tests.runtime.rerankers.test_cross_encoder import save

QUESTION = "Where was the mayor of Nalmir born?"


@pytest.fixture
def database(tmp_path: Path) -> list[str]:
    return ["--db", str(tmp_path / "runs.db")]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first thousand passages of the embedded world, on disk."""
    folder = tmp_path_factory.mktemp("retrieval")
    first = islice(hopland.corpus(), 1000)
    lines = [passage.model_dump_json(include={"id", "title", "text"}) for passage in first]
    (folder / "part.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["index", "build", str(folder / "part.jsonl"), "--out", str(folder / "my index")])
    return folder / "my index"


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        main(["run", QUESTION, *arguments, "--json"])
    said = capsys.readouterr()
    assert stop.value.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def kept(database: list[str]) -> dict[str, Any]:
    """The whole record, as the store has it."""
    from hopscope.store.store import Store

    with Store.open(database[1]) as store:
        [listed] = store.runs()
        return store.load(listed.id).model_dump(mode="json")


@pytest.mark.parametrize(
    ("spec", "stages"),
    [
        ("hopland@7", []),
        ("hopland@RR@3", [("@RR", 20, 20)]),
        ("hopland@6@RR(listwise,window=4,stride=2)@3", [("@RR(listwise,window=4,stride=2)", 6, 6)]),
        ("hopland@4@RR(utility)", [("@RR(utility)", 4, 4)]),
        ("hopland@4@RR(utility:item,judgment=pointwise)@2",
         [("@RR(utility:item,judgment=pointwise)", 4, 4)]),
        ("hopland@3@CP(selective_context:0.5)", [("@CP(selective_context:0.5)", 3, None)]),
        ("hopland@3@CP(long_llmlingua,tokens=40)", [("@CP(long_llmlingua,tokens=40)", 3, None)]),
        ("hopland@2&rrf(hopland,0.5*bm25:hopland@9)@5", []),
        ("weighted(hopland@9,hopland@5,norm=z_score)@5@RR@2@CP(selective_context)",
         [("@RR", 5, 5), ("@CP(selective_context)", 2, None)]),
        ("ReFree", []),
    ],
)  # fmt: skip
def test_an_expression_is_run_and_recorded(
    capsys: pytest.CaptureFixture[str],
    database: list[str],
    spec: str,
    stages: list[tuple[str, int, int | None]],
) -> None:
    found = ask(capsys, "-w", "naive", "--retriever", spec, "--samples", "1", *database)
    run = kept(database)
    assert run["retriever"].split(" [")[0] == spec
    [retrieve, answer] = run["steps"]
    size = retrieval.size(retrieval.parse(spec))
    assert run["options"]["k"] == (size or 5)
    assert len(retrieve["ranked"]) <= (size or 5)
    notes = json.loads(retrieve["output"] or "[]")
    assert [(n["stage"], len(n["before"])) for n in notes] == [(s, n) for s, n, _ in stages]
    for note, (stage, _, after) in zip(notes, stages, strict=True):
        assert after is None or len(note["after"]) == after
        if stage.startswith("@CP"):
            assert 0 < note["tokens_after"] < note["tokens_before"]
    if "tokens=40" in spec:
        assert notes[0]["tokens_after"] <= 40
    if notes:
        assert notes[-1]["after"][: len(retrieve["ranked"])] == [
            hit["passage"]["id"] for hit in retrieve["ranked"]
        ]
        assert retrieve["usage"]["calls"] >= len(notes)
    assert answer["shown"] == [hit["passage"]["id"] for hit in retrieve["ranked"]]
    assert found["status"] == "ok"


def test_the_reader_s_summary_takes_the_place_of_what_it_read(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    ask(capsys, "-w", "naive", "--corpus", "hopland@3@CP", *database)
    run = kept(database)
    [retrieve, answer] = run["steps"]
    [note] = json.loads(retrieve["output"])
    assert len(note["before"]) == 3
    assert len(note["after"]) <= 1
    assert note["tokens_after"] == retrieve["usage"]["output_tokens"]
    assert note["tokens_before"] == retrieve["usage"]["input_tokens"]
    assert retrieve["shown"] == note["before"]
    assert answer["shown"] == note["after"]


@pytest.mark.parametrize("workflow", ["ircot", "flare", "item", "self_ask", "eor"])
def test_every_workflow_takes_it(
    capsys: pytest.CaptureFixture[str], database: list[str], workflow: str
) -> None:
    options = ["-o", "pool=Wiki@2,ReFree"] if workflow == "eor" else []
    options += ["-o", "candidates=4"] if workflow == "item" else []
    spec = "rrf(hopland@5,bm25:hopland@3)@RR(listwise,window=4,stride=2)@2"
    arguments = ["-w", workflow, "--corpus", spec, "--samples", "1", *options, *database]
    found = ask(capsys, *arguments)
    run = kept(database)
    assert run["retriever"].startswith(spec + " [bm25:hopland@")
    retrievals = [step for step in run["steps"] if step["query"]]
    assert retrievals
    for step in retrievals:
        assert len(step["ranked"]) <= 2
        assert step["usage"]["calls"] >= 1
    spent = [step["usage"]["input_tokens"] for step in run["steps"]]
    assert sum(spent) == found["total"]["usage"]["input_tokens"]


def test_a_cross_encoder_from_a_folder_reranks(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    folder = save(tmp_path / "bert", "bert", positions=512)
    spec = f"hopland@8@RR(cross_encoder:{folder},max_length=24)@3"
    ask(capsys, "-w", "naive", "--corpus", spec, "--samples", "1", *database)
    run = kept(database)
    assert run["retriever"].startswith(spec)
    assert "; cross_encoder:" in run["retriever"]
    scores = [hit["score"] for hit in run["steps"][0]["ranked"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    [note] = json.loads(run["steps"][0]["output"])
    assert 0 < note["cut"] <= 8
    assert run["steps"][0]["usage"]["calls"] == 0  # of the reader


def test_an_encoder_from_a_folder_reranks(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    folder = encoders.bert(tmp_path / "bert")
    spec = f"hopland@8@RR(encoder:e5:{folder})@3"
    ask(capsys, "-w", "naive", "--corpus", spec, "--samples", "1", *database)
    run = kept(database)
    assert run["retriever"].startswith(spec)
    assert "; encoder:e5:bert@" in run["retriever"]
    scores = [hit["score"] for hit in run["steps"][0]["ranked"]]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    [note] = json.loads(run["steps"][0]["output"])
    assert len(note["before"]) == 8
    assert run["steps"][0]["usage"]["calls"] == 0  # of the reader


def test_sources_of_one_s_own_are_named_with_their_kind(
    capsys: pytest.CaptureFixture[str], database: list[str], index: Path
) -> None:
    """A folder's name may hold a space; then it stands between double quotes."""
    spec = f'"{index}"@2&bm25:"{index}"@3&hopland@2'
    ask(capsys, "-w", "naive", "--corpus", spec, "--reader", "tiny", *database)
    run = kept(database)
    assert run["options"]["k"] == 7
    assert run["retriever"].count("bm25:part@") == 1
    sources = {hit["passage"]["source"].split("@")[0] for hit in run["steps"][0]["ranked"]}
    assert sources == {"bm25:part", "bm25:hopland"}


def test_a_folder_alone_needs_no_quotes(index: Path) -> None:
    assert retrieval.size(retrieval.parse(str(index))) is None
    assert retrieval.source(str(index)).name.startswith("bm25:part@")


def test_k_is_one_s_own_where_it_is_given(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    ask(capsys, "-w", "naive", "--corpus", "hopland@3&hopland@5", "-k", "4", *database)
    run = kept(database)
    assert run["options"]["k"] == 4
    assert len(run["steps"][0]["ranked"]) == 4


def test_what_a_k_chooses_is_not_what_is_retrieved(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    """`k` of k-sampling is how often it samples."""
    ask(capsys, "-w", "k_sampling", "--corpus", "hopland@2", "-o", "k=1", *database)
    assert kept(database)["options"]["k"] == 1
    assert retrieval.size(retrieval.parse("hopland@2")) == 2


def test_a_run_that_was_stopped_goes_on_with_the_same_retriever(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    checkpoint = ["--checkpoint", str(tmp_path / "run.ckpt")]
    spec = "hopland@4@RR@2"
    ask(capsys, "-w", "naive", "--corpus", spec, *checkpoint, *database)
    with pytest.raises(SystemExit) as stop:
        main(["resume", *checkpoint, *database, "--json"])
    assert stop.value.code in (0, None)
    assert kept(database)["retriever"].startswith(f"{spec} [")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hopland@", "character 9: expected RR, a number or CP, found the end"),
        ("hopland@RR(nothing)", "@RR(nothing): no 'nothing' among rerankers: choose from"),
        ("hopland@RR(listwise,windw=3)", "unknown option 'windw'"),
        ("hopland@RR(listwise,window=x)", "option window=x"),
        ("hopland@RR(listwise,seed=1)", "seed is not to be given"),
        ("hopland@RR(cross_encoder)", "cross_encoder needs model: give cross_encoder:MODEL"),
        ("hopland@RR(cross_encoder:m,model=n)", "model is given twice"),
        ("hopland@RR(encoder)", "encoder needs model: give encoder:MODEL"),
        ("hopland@RR(encoder:word2vec:x)", "no encoder convention 'word2vec'"),
        ("hopland@RR(cross_encoder:m,reader=tiny)", "cross_encoder asks no reader"),
        ("hopland@RR(cross_encoder:/no/such/folder)", "/no/such/folder"),
        ("hopland@RR(listwise:x)", "option window=x"),
        ("hopland@RR(listwise,window=2,stride=5)", "a stride of 5"),
        ("hopland@CP(selective_context,ratio=2)", "a share of 2"),
        ("blend(hopland,hopland)", "no 'blend' among fusions: choose from rrf, weighted"),
        ("rrf(hopland,hopland,k=-1)", "must be 0 or more"),
        ("weighted(hopland,hopland,norm=l2)", "option norm=l2"),
        ("searxng:nowhere", "give its address"),
        ("/no/such/index", "no index at /no/such/index"),
        ("rrf(hopland,/no/such/index)", "no index at /no/such/index"),
    ],
)
def test_mistakes_are_told_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], database: list[str], spec: str, message: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", QUESTION, "-w", "naive", "--corpus", spec, *database])
    said = capsys.readouterr()
    assert stop.value.code == 2
    assert message in " ".join(said.err.split())
    assert "Traceback" not in said.err


def test_an_expression_may_be_longer_than_any_file_s_name() -> None:
    assert retrieval.size(retrieval.parse("&".join(["hopland@1"] * 100))) == 100


def test_the_embedded_world_has_one_kind_of_index() -> None:
    with pytest.raises(UsageError, match="comes with a BM25 index only"):
        retrieval.source("searxng:hopland")


def test_the_embedded_reader_is_only_warned_about_beyond_its_world(index: Path) -> None:
    assert retrieval.embedded_only(retrieval.parse("hopland@RR@5"))
    assert not retrieval.embedded_only(retrieval.parse(f'hopland&"{index}"'))


def test_a_worker_of_eval_counts_the_queries_that_an_encoder_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faiss", reason="the extra faiss-cpu or faiss-gpu is not installed")
    encoder = f"e5:{encoders.bert(tmp_path / 'model')}"
    dense.create([Passage(id="a", text="fox")], tmp_path / "i", name="i", encoder=encoder)
    tried = planning.resolve(
        "hopland:test",
        named=["naive"],
        options={},
        name="i",
        corpus=str(tmp_path / "i"),
        k=None,
        reader="tiny",
        entailment="lexical",
        meters=(),
        rules=(),
        samples=1,
        seed=0,
        order=None,
        db=None,
        limit=1,
        sample_ids=(),
        deterministic=False,
        spend=Spending(),
        presets=Presets(),
    )
    with item_runner.ItemRunnerFactory(tried.settings, tried.name, tried.arms)() as made:
        made.deps.retriever.search(["fox", "fox " * 98, "fox " * 99], k=1)
        assert "longer" not in capsys.readouterr().err
    assert "2 queries are longer than the encoder reads" in capsys.readouterr().err
