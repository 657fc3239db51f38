"""The JSON API gives the records that commands print with `--json`."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.cli.experiment_example import call
from tests.view import experiment

ANSWERS = ("answers", "full_answers")


def printed(capsys: pytest.CaptureFixture[str], database: Path, *arguments: str) -> Any:
    code, out, err = call(capsys, *arguments, "--json", "--db", str(database))
    assert code == 0, err
    return json.loads(out)


def test_a_run_is_what_show_prints(
    client: TestClient, run: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client.get(f"/api/runs/{run}").json() == printed(capsys, database, "show", run)


def test_switching_parts_off_gives_what_show_without_prints(
    client: TestClient, run: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, database, "show", run, "--without", "1", "--interactions", "steps")
    assert client.get(f"/api/runs/{run}/without?part=1").json() == shown["without"]
    assert client.get(f"/api/runs/{run}/interactions").json() == shown["interactions"]
    [belief] = [row for row in shown["without"] if row["meter"] == "seper"]
    assert belief["value"] == pytest.approx(0.3)
    told = {name: [(g["mass"], g["right"]) for g in belief[name]] for name in ANSWERS}
    assert told == {
        "answers": [(0.7, False), (0.3, True)],
        "full_answers": [(0.9, True), (0.1, False)],
    }
    [tokens] = [row["tokens"] for row in shown["without"] if row["meter"] == "grogu"]
    assert [token["key"] for token in tokens] == [False, True]
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    assert {"AnswerGroup", "AnswerToken", "ContextReport"} <= schemas.keys()
    unknown = client.get(f"/api/runs/{run}/without?part=7")
    assert unknown.status_code == 400
    assert "names no step" in unknown.json()["detail"]


def test_tables_are_what_compare_prints(
    client: TestClient, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [overview] = printed(capsys, database, "compare", experiment.NAME, "-t", "overview")
    assert client.get(f"/api/tables/overview/{experiment.NAME}").json() == overview


def test_progress_and_experiments_are_told(client: TestClient) -> None:
    assert client.get(f"/api/progress/{experiment.NAME}").json()["ok"] == 4
    assert {each["name"] for each in client.get("/api/experiments").json()} == {"towns", "hostile"}


def test_pictures_are_specifications(client: TestClient, run: str) -> None:
    for path in (f"runs/{run}/figures/belief", f"figures/workflows/{experiment.NAME}"):
        assert "vega-lite" in client.get(f"/api/{path}").json()["$schema"]
    assert client.get(f"/api/figures/nothing/{experiment.NAME}").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "api/progress/nothing",
        "api/tables/overview/nothing",
        "api/failures/nothing",
        "api/figures/workflows/nothing",
        "experiments/nothing",
        "failures/nothing",
        "fragments/tables/nothing",
        "compare/experiments?baseline=towns&other=nothing",
    ],
)
def test_an_experiment_that_is_not_there_is_not_found(path: str, client: TestClient) -> None:
    answer = client.get(f"/{path}")
    assert answer.status_code == 404
    told = answer.json()["detail"] if path.startswith("api/") else html.unescape(answer.text)
    assert "no experiment 'nothing' in " in told
    assert "there are " in told


def test_openapi_describes_every_route(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    assert {"/api/runs", "/api/runs/{run}/without", "/api/experiments"} <= set(described["paths"])
    assert all(path.startswith("/api/") for path in described["paths"])
    for path in described["paths"].values():
        assert path["get"]["description"]
