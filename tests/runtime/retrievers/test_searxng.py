"""The web search, against a real server on this machine."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hopscope.runtime.errors import RetrieverError, UsageError
from hopscope.runtime.retrievers import searxng

Reply = Callable[[dict[str, str]], tuple[int, bytes]]


class Service:
    """Answers as it is told and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.reply: Reply = lambda query: (200, b'{"results": []}')
        self.headers: dict[str, str] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
                service.asked.append((parts.path, query))
                status, body = service.reply(query)
                self.send_response(status)
                for key, value in service.headers.items():
                    self.send_header(key, value)
                with suppress(ConnectionError):  # who asked no longer waits
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def gives(self, *pages: list[Any]) -> None:
        def reply(query: dict[str, str]) -> tuple[int, bytes]:
            place = int(query["pageno"]) - 1
            found = pages[place] if place < len(pages) else []
            return 200, json.dumps({"results": found}).encode()

        self.reply = reply


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, args=(0.01,))
    thread.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    thread.join()


def result(number: int, **fields: Any) -> dict[str, Any]:
    page = {"url": f"http://x/{number}", "title": f"T{number}", "content": f"Text\n {number}."}
    return {**page, **fields}


def test_results_become_passages(service: Service) -> None:
    service.gives([result(1, score=3.5), result(2)])
    web = searxng.build(url=service.url, language="en", engines="a,b", safesearch=0)
    [hits] = web.search(["who é & why?"], k=2)
    assert [(h.passage.id, h.passage.title, h.passage.text, h.score) for h in hits] == [
        ("http://x/1", "T1", "Text 1.", 3.5),
        ("http://x/2", "T2", "Text 2.", 0.5),
    ]
    assert {hit.passage.source for hit in hits} == {web.name} == {f"searxng:{service.url}/search"}
    assert service.asked == [
        (
            "/search",
            {
                "q": "who é & why?",
                "format": "json",
                "pageno": "1",
                "language": "en",
                "engines": "a,b",
                "safesearch": "0",
            },
        )
    ]


def test_it_turns_pages_until_there_are_enough(service: Service) -> None:
    service.gives([result(1), result(2)], [result(2), result(3)], [result(4), result(5)])
    [hits] = searxng.build(url=f"{service.url}/own/search").search(["q"], k=4)
    assert [hit.passage.title for hit in hits] == ["T1", "T2", "T3", "T4"]
    assert [query["pageno"] for _, query in service.asked] == ["1", "2", "3"]
    assert {path for path, _ in service.asked} == {"/own/search"}


def test_it_stops_where_a_page_brings_nothing_new(service: Service) -> None:
    service.gives([result(1)], [result(1)], [result(2)])
    [hits] = searxng.build(url=service.url).search(["q"], k=4)
    assert (len(hits), len(service.asked)) == (1, 2)


def test_it_turns_no_more_pages_than_it_may(service: Service) -> None:
    service.gives(*[[result(number)] for number in range(9)])
    [hits] = searxng.build(url=service.url, max_pages=2).search(["q"], k=9)
    assert (len(hits), len(service.asked)) == (2, 2)


def test_broken_results_are_left_out(service: Service) -> None:
    odd = [None, "x", {}, {"title": 3, "content": None}, result(1, score="high", content="")]
    service.gives([*odd, result(2, score=float("nan"), title="\ud83d")])
    [hits] = searxng.build(url=service.url).search(["q"], k=9)
    assert [(h.passage.title, h.passage.text, h.score) for h in hits] == [
        ("", "T1", 1.0),
        ("\ufffd", "Text 2.", 0.5),
    ]


def test_an_empty_query_asks_nothing(service: Service) -> None:
    assert searxng.build(url=service.url).search([" "], k=3) == [[]]
    assert service.asked == []


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, b"", "status 403: add json to search.formats"),
        (404, b"", "status 404: give the address of its search"),
        (429, b"", "status 429: it limits requests"),
        (500, b"", "status 500$"),
        (200, b"<html>", "is json among the formats"),
        (200, b'{"answers": []}', "is json among the formats"),
        (200, b"\xff", "is json among the formats"),
    ],
)
def test_what_the_service_gets_wrong_is_told(
    service: Service, status: int, body: bytes, message: str
) -> None:
    service.reply = lambda query: (status, body)
    with pytest.raises(RetrieverError, match=message) as error:
        searxng.build(url=service.url).search(["q"], k=1)
    assert service.url in str(error.value)


def test_no_other_server_is_contacted(service: Service) -> None:
    """A redirect would send the question to a host that the user did not name."""
    service.headers = {"Location": f"{service.url}/elsewhere"}
    service.reply = lambda query: (302, b"")
    with pytest.raises(RetrieverError, match="302: it sends elsewhere"):
        searxng.build(url=service.url).search(["q"], k=1)
    assert [path for path, _ in service.asked] == ["/search"]


def test_proxies_of_the_environment_are_not_used(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    service.gives([result(1)])
    [hits] = searxng.build(url=service.url).search(["q"], k=1)
    assert len(hits) == 1


def test_a_silent_service_is_waited_for_only_so_long(service: Service) -> None:
    def reply(query: dict[str, str]) -> tuple[int, bytes]:
        time.sleep(0.3)
        return 200, b"{}"

    service.reply = reply
    with pytest.raises(RetrieverError, match=r"no answer within 0\.05 seconds"):
        searxng.build(url=service.url, timeout=0.05).search(["q"], k=1)


def test_a_service_that_is_not_there_is_told() -> None:
    gone = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    gone.server_close()
    with pytest.raises(RetrieverError, match="cannot be reached"):
        searxng.build(url=f"http://127.0.0.1:{gone.server_port}").search(["q"], k=1)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host",
        "file:///etc",
        "http://",
        "http://h?q=1",
        "http://[",
        "http://u:p@h",
        "http://h:x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="give its address"):
        searxng.build(url=url)


@pytest.mark.parametrize("options", [{"timeout": 0.0}, {"timeout": -1.0}, {"max_pages": 0}])
def test_limits_must_allow_a_search(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="timeout must be more than 0"):
        searxng.build(url="http://host", **options)
