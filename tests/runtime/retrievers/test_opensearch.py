"""The search service: its contract, by a server on this machine that speaks the documented API, and
a real one where HOPSCOPE_TEST_OPENSEARCH names its address."""

import logging
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from hopscope.runtime.errors import (
    CorpusError,
    IndexMismatchError,
    MissingExtraError,
    RetrieverError,
    UsageError,
)
from hopscope.runtime.retrievers import bm25, opensearch
from hopscope.runtime.types import Hit, Passage
from tests.servers.opensearch import Asked, Service, running

FARM = (
    Passage(id="fox", title="Fox", text="A red fox watches the hens."),
    Passage(id="hen", title="Hen", text="Hens lay eggs, and foxes eat hens."),
    Passage(id="cow", title="Cow", text="The cow eats grass."),
    Passage(id="owl", title="", text="Owls hunt at night. \u00c5 owl \U0001f989"),
)
SECRETS = ("OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD", "OPENSEARCH_API_KEY")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRETS, "OPENSEARCH_CA_CERTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service() -> Iterator[Service]:
    with running(Service()) as service:
        yield service


def ids(hits: Iterable[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def made(service: Service, passages: Iterable[Passage] = FARM, **options: Any) -> str:
    url = f"{service.url}/farm"
    opensearch.create(passages, url, name="farm", **options)
    return url


def test_it_finds_what_was_indexed(service: Service) -> None:
    url = made(service)
    found = opensearch.build(url=url).search(["foxes and hens", "eat", "zebra"], k=2)
    same = bm25.from_passages(FARM, name="farm").search(["foxes and hens", "eat", "zebra"], k=2)
    assert [ids(hits) for hits in found] == [ids(hits) for hits in same]
    assert [len(hits) for hits in found] == [2, 2, 0]
    [first, _] = found[0]
    assert first.passage.model_dump(exclude={"source"}) == FARM[1].model_dump(exclude={"source"})


@pytest.fixture
def osmem() -> Iterator[Any]:
    """A process that answers as OpenSearch 3 does, over an engine of its own."""
    server = pytest.importorskip("osmem_server").OsmemServer.start(japanese=False)
    yield server
    server.close()
    server.process.stdout.close()


@pytest.fixture(params=["a real service", "a server process by others"])
def by_others(request: pytest.FixtureRequest) -> tuple[str, dict[str, float]]:
    """The address of a service that is not of these tests, and the scoring that it can do."""
    if request.param == "a real service":
        if "HOPSCOPE_TEST_OPENSEARCH" not in os.environ:
            pytest.skip("HOPSCOPE_TEST_OPENSEARCH names no service, such as http://localhost:9200")
        return os.environ["HOPSCOPE_TEST_OPENSEARCH"], {}
    # It scores by these parameters, whatever an index is created with.
    return request.getfixturevalue("osmem").url, {"k1": 1.2, "b": 0.75}


def test_services_by_others_keep_the_contract(by_others: tuple[str, dict[str, float]]) -> None:
    """Everything that the server of these tests only claims."""
    service, scoring = by_others
    url = f"{service}/hopscope-test-{secrets.token_hex(4)}"
    many = [*FARM, *(Passage(id=f"n{n}", text=f"Number {n} of the barn.") for n in range(1200))]
    manifest = opensearch.create(many, url, name="farm", shards=3, **scoring)
    try:
        assert opensearch.verify(url) == manifest
        found, queries = opensearch.build(url=url), ["foxes and hens", "eat", "zebra", "barn"]
        same = bm25.from_passages(many, name="farm", **scoring).search(queries, k=20)
        assert [ids(hits) for hits in found.search(queries, k=20)] == [ids(h) for h in same]
        with pytest.raises(UsageError, match="is an index already"):
            opensearch.create(FARM, url, name="farm")
        opensearch.create(FARM, url, name="farm", overwrite=True)
        assert opensearch.read_manifest(url).counts["passages"] == 4
    finally:
        where = opensearch._client.address(url)
        client = opensearch._client.connect(where.service, timeout=60)
        for index in client.indices.get(index=f"{where.index}-*"):
            client.indices.delete(index=index)


def test_a_server_process_that_ends_is_told(osmem: Any) -> None:
    url = f"{osmem.url}/farm"
    opensearch.create(FARM, url, name="farm")
    found = opensearch.build(url=url)
    assert "hen" in ids(found.search(["hens"], k=3)[0])
    osmem.close()
    for ask in (lambda: found.search(["hens"], k=3), lambda: opensearch.build(url=url)):
        with pytest.raises(RetrieverError, match="cannot be reached"):
            ask()


def test_the_name_holds_corpus_and_fingerprint(service: Service) -> None:
    url = made(service)
    found = opensearch.build(url=url)
    manifest = opensearch.read_manifest(url)
    assert found.name == f"opensearch:farm@{manifest.fingerprint[:12]}"
    assert found.search(["fox"], k=1)[0][0].passage.source == found.name
    local = bm25.from_passages(FARM, name="farm").name
    assert local == f"bm25:farm@{manifest.fingerprint[:12]}"
    made(service, k1=1.2, b=0.75, overwrite=True)
    assert opensearch.build(url=url).name.startswith("opensearch(k1=1.2,b=0.75):farm@")


def test_equal_scores_keep_the_order_of_the_corpus(service: Service) -> None:
    alike = [Passage(id=f"{id:02}", text="the same words") for id in reversed(range(12))]
    found = opensearch.build(url=made(service, alike)).search(["words"], k=12)
    assert ids(found[0]) == [passage.id for passage in alike]


def test_many_queries_go_in_few_requests_and_blank_ones_in_none(service: Service) -> None:
    found = opensearch.build(url=made(service))
    service.asked.clear()
    assert found.search(["", " \n"], k=3) == [[], []]
    assert found.search(["fox"], k=0) == [[]]
    assert not service.asked
    rankings = found.search(["fox", ""] * 300, k=1)
    assert [ids(hits) for hits in rankings] == [["fox"], []] * 300
    assert [len(asked.lines) // 2 for asked in service.asked] == [256, 44]
    service.asked.clear()
    found.search(["fox"] * 12, k=2500)  # 10,000 hits at most are asked for at once
    assert [len(asked.lines) // 2 for asked in service.asked] == [4, 4, 4]


def test_half_of_a_surrogate_pair_is_no_mistake(service: Service) -> None:
    assert ids(opensearch.build(url=made(service)).search(["hen \ud83d"], k=1)[0]) == ["hen"]


def test_threads_share_one_retriever(service: Service) -> None:
    found = opensearch.build(url=made(service))
    with ThreadPoolExecutor(8) as pool:
        rankings = pool.map(lambda query: found.search([query], k=1)[0], ["fox", "cow"] * 20)
        assert [ids(hits) for hits in rankings] == [["fox"], ["cow"]] * 20


def test_passages_are_sent_while_they_are_read(service: Service) -> None:
    """A corpus that does not fit into memory is never there as a whole."""
    most, read, told = 0, 0, []

    def corpus() -> Iterator[Passage]:
        nonlocal most, read
        for number in range(2200):
            [index] = service.indices.values()
            sent = len(index.written)
            read, most = number + 1, max(most, number - sent)
            yield Passage(id=str(number), text=f"passage {number}")

    manifest = opensearch.create(
        corpus(), f"{service.url}/long", name="long", progress=lambda *what: told.append(what)
    )
    assert manifest.counts == {"passages": 2200, "shards": 1}
    assert read == 2200
    assert most <= 2 * opensearch.SENT_PASSAGES
    assert told[0] == ("read", 1)
    assert told[-1] == ("write", 2200)
    assert opensearch.verify(f"{service.url}/long") == manifest  # three pages of it


def test_a_long_passage_goes_in_a_request_of_its_own(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch, "SENT_BYTES", 3000)
    long = [Passage(id=str(n), text="word " * 300) for n in range(5)]
    assert opensearch.read_manifest(made(service, long)).counts["passages"] == 5
    sizes = [len(asked.text) for asked in service.asked if asked.action == "_bulk"]
    assert len(sizes) == 5
    assert max(sizes) <= 3000


def test_shards_are_asked_for(service: Service) -> None:
    made(service, shards=3)
    [index] = service.indices.values()
    assert index.settings["number_of_shards"] == 3


def test_a_finished_index_is_as_the_service_likes_it_and_takes_no_more(service: Service) -> None:
    made(service)
    [(name, index)] = service.indices.items()
    assert not {"refresh_interval", "number_of_replicas"} & index.settings.keys()
    assert index.settings["blocks.write"] is True
    client = opensearch._client.connect(service.url, timeout=5)
    line = {"position": 9, "id": "x", "title": "", "text": "x"}
    answer = client.bulk(index=name, body=[{"index": {"_id": "9"}}, line])
    assert answer["items"][0]["index"]["status"] == 403


def broken() -> Iterator[Passage]:
    yield from FARM
    raise CorpusError("farm.jsonl, line 5: no text")


@pytest.mark.parametrize(
    ("passages", "error"), [(broken(), "line 5"), ((), "the corpus has no passages")]
)
def test_a_build_that_fails_leaves_everything_as_it_was(
    service: Service, passages: Iterable[Passage], error: str
) -> None:
    url = made(service)
    before = dict(service.indices), dict(service.aliases)
    with pytest.raises(CorpusError, match=error):
        opensearch.create(passages, url, name="farm", overwrite=True)
    assert (service.indices, service.aliases) == before
    assert ids(opensearch.build(url=url).search(["cow"], k=1)[0]) == ["cow"]


def test_a_stopped_build_leaves_nothing(service: Service) -> None:
    def stopped() -> Iterator[Passage]:
        yield FARM[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(service, stopped())
    assert (service.indices, service.aliases) == ({}, {})


def test_a_passage_that_is_refused_ends_the_build(service: Service) -> None:
    def refuse(asked: Asked) -> tuple[int, Any] | None:
        if asked.action != "_bulk":
            return None
        error = {"type": "mapper_parsing_exception", "reason": "failed to parse",
                 "caused_by": {"type": "x", "reason": "immense term"}}  # fmt: skip
        items = [{"index": {"_id": str(n), "status": 400, "error": error}} for n in range(4)]
        return 200, {"errors": True, "items": items}

    service.instead = refuse
    with pytest.raises(RetrieverError, match="did not take passage 0: immense term"):
        made(service)
    assert service.indices == {}


def test_a_busy_service_is_asked_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    refusals = 2

    def busy(asked: Asked) -> tuple[int, Any] | None:
        nonlocal refusals
        if asked.action != "_bulk" or not refusals:
            return None
        refusals -= 1
        return 429, {"error": {"type": "circuit_breaking_exception"}, "status": 429}

    service.instead = busy
    assert opensearch.verify(made(service)).counts["passages"] == 4
    assert waited == [2, 4]


def test_passages_that_are_lost_are_noticed(service: Service) -> None:
    service.instead = lambda asked: (200, {"count": 3}) if asked.action == "_count" else None
    with pytest.raises(RetrieverError, match="has 3 passages after taking 4"):
        made(service)
    assert service.indices == {}


def test_an_index_is_replaced_only_if_that_is_wanted(service: Service) -> None:
    url = made(service)
    opened = opensearch.build(url=url)
    with pytest.raises(UsageError, match=r"/farm is an index already: .* --overwrite"):
        made(service)
    [old] = service.indices
    made(service, FARM[:2], overwrite=True)
    [new] = service.indices
    assert old != new
    assert service.aliases == {"farm": {new}}
    assert ids(opensearch.build(url=url).search(["cow fox"], k=9)[0]) == ["fox", "hen"]
    with pytest.raises(RetrieverError, match=rf"no such index \[{old}\]"):
        opened.search(["fox"], k=1)


def test_what_hopscope_has_not_made_is_never_replaced(service: Service) -> None:
    made(service)
    service.indices["farm"] = service.indices.pop(next(iter(service.indices)))
    service.indices["farm"].mappings.pop("_meta")
    service.aliases.clear()
    with pytest.raises(UsageError, match="is no index of Hopscope's: give another name"):
        made(service, overwrite=True)
    with pytest.raises(IndexMismatchError, match="no manifest of format 1"):
        opensearch.build(url=f"{service.url}/farm")


def test_an_index_that_is_not_what_its_manifest_says_is_refused(service: Service) -> None:
    url = made(service)
    [index] = service.indices.values()
    gone = index.seen.pop("2")
    with pytest.raises(IndexMismatchError, match="has 3 passages, its manifest says 4"):
        opensearch.build(url=url)
    index.seen["2"] = gone | {"text": "Another text."}
    opensearch.build(url=url)
    with pytest.raises(IndexMismatchError, match=r"have fingerprint .*, its manifest says"):
        opensearch.verify(url)
    index.mappings["_meta"]["hopscope"]["settings"]["stemmer"] = "snowball"
    with pytest.raises(IndexMismatchError, match="stemmer = 'snowball', this version has 'porter'"):
        opensearch.build(url=url)


def test_a_name_for_several_indices_is_refused(service: Service) -> None:
    url = made(service)
    service.indices["other"] = service.indices[next(iter(service.indices))]
    service.aliases["farm"].add("other")
    with pytest.raises(IndexMismatchError, match="stands for 2 indices"):
        opensearch.build(url=url)


def test_a_missing_index_is_named_with_what_makes_it(service: Service) -> None:
    with pytest.raises(UsageError, match=r"no index at .*/farm: .*--kind opensearch --out http"):
        opensearch.build(url=f"{service.url}/farm")


def test_a_service_that_is_away_is_told() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{held.getsockname()[1]}/farm"
        with pytest.raises(RetrieverError, match=r"cannot be reached: .*refused"):
            opensearch.build(url=url)
        with pytest.raises(RetrieverError, match=r"cannot be reached: .*refused"):
            opensearch.create(FARM, url, name="farm")


def test_a_service_that_goes_away_is_told() -> None:
    with running(Service()) as service:
        service.headers["connection"] = "close"
        found = opensearch.build(url=made(service))
    with pytest.raises(RetrieverError, match=r"cannot be reached: .*refused"):
        found.search(["fox"], k=1)


def test_a_silent_service_is_given_up(service: Service) -> None:
    found = opensearch.build(url=made(service), timeout=0.2)

    def silent(asked: Asked) -> None:
        time.sleep(0.6)

    service.instead = silent
    with pytest.raises(RetrieverError, match="gave no answer in time"):
        found.search(["fox"], k=1)


def test_credentials_are_taken_from_the_environment(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.wants("reader", "s3cret-word")
    with pytest.raises(RetrieverError, match=r"status 401.*set OPENSEARCH_USERNAME"):
        made(service)
    monkeypatch.setenv("OPENSEARCH_USERNAME", "reader")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "wrong-word")
    with pytest.raises(RetrieverError, match="does not take these credentials"):
        made(service)
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "s3cret-word")
    assert ids(opensearch.build(url=made(service)).search(["fox"], k=1)[0]) == ["fox"]
    service.authorization = "ApiKey abc="
    monkeypatch.setenv("OPENSEARCH_API_KEY", "abc=")
    with pytest.raises(UsageError, match="either OPENSEARCH_API_KEY or"):
        opensearch.build(url=f"{service.url}/farm")
    monkeypatch.delenv("OPENSEARCH_USERNAME")
    with pytest.raises(UsageError, match="set both OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD"):
        opensearch.build(url=f"{service.url}/farm")
    monkeypatch.delenv("OPENSEARCH_PASSWORD")
    assert opensearch.build(url=f"{service.url}/farm").name.startswith("opensearch:farm@")


def test_credentials_are_never_kept_or_told(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENSEARCH_USERNAME", "reader-name")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "s3cret-word")
    service.wants("reader-name", "s3cret-word")
    token = service.authorization.split()[1]
    with caplog.at_level(logging.DEBUG):
        url = made(service)
        found = opensearch.build(url=url)
        hits = found.search(["fox"], k=1)
        service.wants("other", "other")
        with pytest.raises(RetrieverError) as refused:
            found.search(["fox"], k=1)
    told = [caplog.text, str(refused.value), repr(refused.value), repr(hits), found.name]
    told += [str(service.indices), *(asked.text for asked in service.asked)]
    assert "msearch" in caplog.text
    for secret in ("reader-name", "s3cret-word", token):
        assert not [text for text in told if secret in text]
    with pytest.raises(UsageError, match="must hold no credentials") as given:
        opensearch.build(url=service.url.replace("//", "//me:s3cret-word@") + "/farm")
    assert "s3cret" not in str(given.value)


@pytest.mark.skipif(
    which("openssl") is None, reason="openssl, which makes certificates, is missing"
)
def test_a_certificate_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    place = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(file), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run([*command.split(), *place, *files], check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "certificate.pem").read_text())
    with running(Service(), certificate=file) as service:
        with pytest.raises(RetrieverError, match=r"is not trusted \(.*by OPENSEARCH_CA_CERTS"):
            made(service)
        monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(tmp_path / "certificate.pem"))
        assert ids(opensearch.build(url=made(service)).search(["fox"], k=1)[0]) == ["fox"]


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (403, {"error": {"type": "security_exception", "reason": "no permissions for [x]"}},
         r"does not let this user .* \(status 403\): no permissions for \[x\]"),
        (500, {"error": {"type": "t", "reason": "r", "root_cause": [{"reason": "disk full"}]}},
         "answered with status 500: disk full"),
        (503, b"", "answered with status 503"),
        (302, b"", "answered with status 302"),
        (200, b"<html>", "does not answer as OpenSearch does"),
        (200, {"responses": []}, "does not answer as OpenSearch does"),
        (200, {"responses": [{"hits": {}}]}, "does not answer as OpenSearch does"),
        (200, {"answer": 1}, "does not answer as OpenSearch does"),
        (200, {"responses": [{"error": {"type": "search_phase_execution_exception",
               "reason": "all shards failed",
               "root_cause": [{"type": "too_many_clauses", "reason": "maxClauseCount is 1024"}]},
               "status": 400}]}, "did not search: maxClauseCount is 1024"),
        (200, {"responses": [{"_shards": {"total": 3, "failed": 1, "failures": [
               {"shard": 0, "reason": {"type": "x", "reason": "node left"}}]},
               "timed_out": False, "hits": {"hits": []}}]},
         "1 of 3 shards of .* gave nothing: node left"),
        (200, {"responses": [{"_shards": {"total": 3, "failed": 0}, "timed_out": True,
               "hits": {"hits": []}}]}, "the time was over"),
    ],
)  # fmt: skip
def test_what_the_service_gets_wrong_is_told(
    service: Service, status: int, answer: Any, message: str
) -> None:
    """A ranking of some of the shards would look like a whole one."""
    found = opensearch.build(url=made(service))
    service.instead = lambda asked: (status, answer)
    service.headers["location"] = f"{service.url}/elsewhere"
    service.asked.clear()
    with pytest.raises(RetrieverError, match=message):
        found.search(["fox"], k=1)
    assert {asked.action for asked in service.asked} == {"_msearch"}  # and goes nowhere else


def test_too_many_hits_are_refused_by_the_service(service: Service) -> None:
    with pytest.raises(RetrieverError, match="status 400: Result window is too large"):
        opensearch.build(url=made(service)).search(["fox"], k=10_001)


@pytest.mark.parametrize(
    "url",
    ["", "farm", "localhost:9200/farm", "ftp://h/farm", "http://h", "http://h/", "http:///farm",
     "http://h/Farm", "http://h/_all", "http://h/*", "http://h/a,b", "http://h/farm?x=1",
     "http://h/farm#x", "http://h:x/farm", "http://h:0/farm", "http://h/" + "x" * 201],
)  # fmt: skip
def test_what_names_no_index_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"give http://HOST:PORT/INDEX"):
        opensearch.build(url=url)


def test_an_address_may_have_a_path(service: Service) -> None:
    """A service behind a gateway."""
    found = opensearch._client.address("https://h.example/search/farm/")
    assert (found.service, found.index) == ("https://h.example/search", "farm")
    made(service)
    service.asked.clear()
    with pytest.raises(UsageError, match=r"no index at .*/under/farm"):
        opensearch.build(url=f"{service.url}/under/farm")
    assert service.asked[0].path == ["under", "farm"]


def test_settings_that_cannot_be_are_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="timeout must be more than 0"):
        opensearch.build(url=f"{service.url}/farm", timeout=0)
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match=r"OPENSEARCH_CA_CERTS names no file: .*none\.pem"):
        opensearch.build(url=f"{service.url}/farm")


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[opensearch\]'"):
        opensearch.build(url="http://127.0.0.1:9200/farm")
