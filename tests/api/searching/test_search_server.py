"""The search server, with Search-R1's way of asking and a real client of MCP, over a socket."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx
import pytest
import uvicorn
from mcp.client.client import Client

from hopscope import __version__
from hopscope.api import retrieval
from hopscope.api.searching.batching import Batches
from hopscope.api.searching.server import LARGEST, application
from hopscope.runtime.errors import RetrieverError
from hopscope.runtime.ports import Retriever
from hopscope.runtime.types import Hit
from hopscope.view.server.guarding import names
from hopscope.view.server.serving import listen

QUERIES = ["What company employs Elsa Wilby?", "headquarters of Salwin Pictures"]


@pytest.fixture(scope="module")
def index() -> Retriever:
    return retrieval.source("hopland")


@pytest.fixture(scope="module")
def address(index: Retriever) -> Iterator[str]:
    """A server on loopback."""
    batches = Batches(index)
    with listen("127.0.0.1", 0) as place:
        app = application(batches, hosts=names("127.0.0.1", place.port))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]})
        thread.start()
        yield f"http://{place.name}"
        server.should_exit = True
        thread.join()
    batches.close()


def test_search_r1s_client_reads_the_answer(address: str, index: Retriever) -> None:
    """Its `_passages2string` takes the title off the first line of the contents."""
    payload = {"queries": QUERIES, "topk": 2, "return_scores": True}
    result = httpx.post(f"{address}/retrieve", json=payload).json()["result"]
    rankings = index.search(QUERIES, k=2)
    assert [[each["score"] for each in found] for found in result] == [
        pytest.approx([hit.score for hit in hits]) for hits in rankings
    ]
    contents = result[0][0]["document"]["contents"]
    title, text = contents.split("\n")[0], "\n".join(contents.split("\n")[1:])
    assert title == '"Elsa Wilby"'
    assert text == rankings[0][0].passage.text
    plain = httpx.post(f"{address}/retrieve", json={"queries": QUERIES[:1]}).json()["result"]
    assert [each["id"] for each in plain[0]] == [
        hit.passage.id for hit in index.search(QUERIES[:1], k=3)[0]
    ]


def test_a_client_of_mcp_gets_structured_passages(address: str, index: Retriever) -> None:
    async def ask() -> Any:
        async with Client(f"{address}/mcp") as client:
            tools = (await client.list_tools()).tools
            found = await client.call_tool("search", {"query": QUERIES[0], "k": 2})
            server = client.server_info
        return server, [tool.name for tool in tools], found

    server, tools, found = asyncio.run(ask())
    assert (server.name, server.version) == ("hopscope", __version__)
    assert tools == ["search"]
    passages = found.structured_content["passages"]
    assert [each["title"] for each in passages] == [
        hit.passage.title for hit in index.search(QUERIES[:1], k=2)[0]
    ]
    assert passages[0]["text"] == "Elsa Wilby is employed by Salwin Pictures."


def test_a_wrong_request_is_told_what_is_wrong(address: str) -> None:
    answer = httpx.post(f"{address}/retrieve", json={"queries": "one"})
    assert answer.status_code == 422
    assert "queries" in answer.json()["error"]
    assert httpx.post(f"{address}/retrieve", headers={"host": "evil.example"}).status_code == 400
    other = {"origin": "http://evil.example"}
    assert httpx.post(f"{address}/retrieve", headers=other).status_code == 403


def test_a_token_is_asked_for(index: Retriever) -> None:
    from starlette.testclient import TestClient

    batches = Batches(index)
    client = TestClient(application(batches, hosts=["testserver"], token="secret"))
    asked: dict[str, Any] = {"queries": QUERIES[:1], "topk": 1}
    assert client.post("/retrieve", json=asked).status_code == 401
    bearer = {"authorization": "Bearer secret"}
    assert client.post("/retrieve", json=asked, headers=bearer).status_code == 200
    assert client.get("/health", headers=bearer).json()["status"] == "ok"
    batches.close()


def test_at_all_addresses_any_name_is_answered_with_the_token(index: Retriever) -> None:
    """The server cannot know the names under which other computers reach it."""
    from starlette.testclient import TestClient

    batches = Batches(index)
    app = application(batches, hosts=names("0.0.0.0", 80), token="secret")
    bearer = {"authorization": "Bearer secret"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"accept": "application/json, text/event-stream", **bearer}
    with TestClient(app, base_url="http://Searcher") as client:
        assert client.get("/health").status_code == 401
        assert client.get("/health", headers=bearer).status_code == 200
        own = {**bearer, "origin": "http://searcher"}
        assert client.get("/health", headers=own).status_code == 200
        foreign = {**bearer, "origin": "http://evil.example"}
        assert client.get("/health", headers=foreign).status_code == 403
        assert client.post("/mcp", json=call, headers=accepted).status_code == 200
    batches.close()


class Held:
    """A retriever whose first search waits until the others are there."""

    name = "held"

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.go_on = threading.Event()

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.go_on.wait()
        self.batches.append(len(queries))
        if "broken" in queries:
            raise ValueError("no index")
        return [[] for _ in queries]


def test_what_waits_is_searched_at_once() -> None:
    """One search each would take as many times as long."""
    held = Held()
    batches = Batches(held)
    first = batches.search(["a"], k=1)
    while batches.searches == 0:  # the worker has begun
        pass
    others = [batches.search(["b", "c"], k=1) for _ in range(5)]
    deeper = batches.search(["d"], k=2)
    broken = batches.search(["broken"], k=3)
    held.go_on.set()
    assert len(first.result()) == 1
    assert [len(each.result()) for each in others] == [2] * 5
    assert len(deeper.result()) == 1
    with pytest.raises(RetrieverError, match="held failed: ValueError: no index"):
        broken.result()
    batches.close()
    assert held.batches == [1, 10, 1, 1]


def test_a_client_that_gave_up_stops_no_other() -> None:
    """Its future takes no result; the only worker must go on."""
    held = Held()
    batches = Batches(held)
    first = batches.search(["a"], k=1)
    while batches.searches == 0:  # the worker has begun
        pass
    gone, alone = batches.search(["b"], k=1), batches.search(["c"], k=2)
    assert gone.cancel()
    assert alone.cancel()
    assert not first.cancel()
    held.go_on.set()
    assert batches.search(["d"], k=1).result(timeout=10) == [[]]
    batches.close()
    assert sum(held.batches) == 2


@pytest.mark.parametrize("path", ["/retrieve", "/mcp"])
def test_a_body_in_parts_is_read_up_to_the_largest(path: str, index: Retriever) -> None:
    """It has no length that could be refused at once."""
    batches = Batches(index)
    taken = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(20):
            taken += 2**20
            yield b" " * 2**20

    async def ask() -> httpx.Response:
        app = application(batches, hosts=["testserver"])
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.post(path, content=parts())

    answer = asyncio.run(ask())
    batches.close()
    assert (answer.status_code, taken) == (413, LARGEST + 2**20)
