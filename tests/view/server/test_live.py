"""Progress over real HTTP: told when it changes, bounded, and no hindrance to the server's end."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from hopscope.runtime.types import Question
from hopscope.store.experiments.records import DatasetEntry
from hopscope.store.store import Store
from hopscope.view.server import live
from hopscope.view.server.app import application
from hopscope.view.server.live import LiveProgress
from hopscope.view.server.serving import listen
from tests.view import experiment

NEXT = "next\n\nevent: done"
"""A name that would end an event."""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Store]:
    """A store with an experiment of which nothing is done."""
    with Store.open(tmp_path / "runs.db") as store:
        experiment.fill(store)
        plan = store.experiments.find(experiment.NAME)
        entry = DatasetEntry(question=Question(text="Who?", answers=("Ada",), id="q"), hops=1)
        for name in ("live", NEXT):
            store.experiments.add(plan.model_copy(update={"name": name}), [entry])
        yield store


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """The port of a server that ends with the block."""
    with listen("127.0.0.1", 0) as place:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]})
        thread.start()
        try:
            yield place.port
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def bare(progress: LiveProgress) -> FastAPI:
    app = FastAPI()
    app.include_router(live.router(progress))
    return app


@contextmanager
def stream(port: int, query: str = "experiment=live", **headers: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/api/events?{query}", headers=headers)
        yield connection.getresponse()
    finally:
        connection.close()


def event(response: HTTPResponse) -> tuple[str, Any]:
    """The next event, whose signs of life are left out; empty at the end."""
    found: dict[str, str] = {}
    while line := response.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name in ("event", "data"):
            found[name] = value
        elif not line.strip() and found:
            return found["event"], json.loads(found["data"])
    return "", None


def work(store: Store, items: int) -> None:
    session = store.experiments.begin_session("live", owner="here", environment={})
    for claimed in store.experiments.claim(session, items):
        run = experiment.run(50 + claimed.position, claimed.entry.question, claimed.arm.workflow)
        store.experiments.complete(session, claimed, run)


def test_each_change_is_told_until_nothing_is_left(running: Store) -> None:
    progress = LiveProgress(running, every=0.05)
    with serving(bare(progress)) as port, stream(port) as told:
        assert told.headers["content-type"].startswith("text/event-stream")
        assert event(told) == (
            "progress",
            {"experiment": "live", "pending": 2, "running": 0, "ok": 0, "failed": 0},
        )
        work(running, 1)
        while (found := event(told)[1])["ok"] < 1:
            pass
        assert found["pending"] == 1
        work(running, 1)
        while (last := event(told))[0] == "progress":
            pass
        assert last == ("done", {})
        assert event(told) == ("", None)


def test_several_experiments_share_a_stream_and_names_are_data(running: Store) -> None:
    query = "experiment=live&experiment=next%0A%0Aevent%3A+done&experiment=towns"
    with serving(bare(LiveProgress(running))) as port, stream(port, query) as told:
        found = [event(told) for _ in range(3)]
    assert [kind for kind, _ in found] == ["progress"] * 3
    assert [each["experiment"] for _, each in found] == ["live", NEXT, "towns"]


def test_streams_are_bounded_and_a_closed_one_makes_room(running: Store) -> None:
    progress = LiveProgress(running, most=1, every=0.05, sign=0.05)
    with serving(bare(progress)) as port:
        with stream(port) as first:
            event(first)
            with stream(port) as second:
                assert second.status == 503
                assert "ask /api/progress" in json.load(second)["detail"]
        until = monotonic() + 60
        status = 503
        while status == 503 and monotonic() < until:  # until a sign of life finds nobody there
            with stream(port) as third:
                status = third.status
        assert status == 200


def test_a_stream_ends_in_time_and_without_anything_done(running: Store) -> None:
    with (
        serving(bare(LiveProgress(running, every=0.05, longest=0.2))) as port,
        stream(port) as told,
    ):
        assert event(told)[0] == "progress"
        assert event(told) == ("", None)


def test_one_look_at_the_database_serves_all_streams(
    running: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = running.experiments.progress

    def counted(name: str) -> Any:
        looks.append(name)
        return look(name)

    monkeypatch.setattr(running.experiments, "progress", counted)
    progress = LiveProgress(running, every=3600)
    assert [progress.progress(["live"])["live"].pending for _ in range(5)] == [2] * 5
    assert looks == ["live"]


def test_what_is_not_there_and_who_may_not_ask_is_told(running: Store) -> None:
    app = application(running, hosts=None, token="secret")
    bearer = {"authorization": "Bearer secret"}
    with serving(app) as port:
        with stream(port, "experiment=nothing", **bearer) as told:
            assert (told.status, "nothing" in json.load(told)["detail"]) == (404, True)
        with stream(port, "", **bearer) as told:
            assert told.status == 422
        with stream(port, "&".join(["experiment=live"] * 51), **bearer) as told:
            assert told.status == 422
        with stream(port, **bearer, **{"sec-fetch-site": "cross-site"}) as told:
            assert told.status == 403
        with stream(port) as told:
            assert told.status == 401
        with stream(port, "experiment=towns", **bearer) as told:
            assert "default-src 'none'" in told.headers["content-security-policy"]
            assert [event(told)[0] for _ in range(2)] == ["progress", "done"]


def test_an_open_stream_does_not_keep_the_server_from_its_end(running: Store) -> None:
    command = [sys.executable, "-m", "hopscope.cli", "view", "--port", "0"]
    command += ["--db", running.name]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        [port] = re.findall(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
        with stream(int(port)) as told:
            assert event(told)[0] == "progress"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) in (0, 130, -signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
