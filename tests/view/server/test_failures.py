"""Each mark of the heat map of failures leads to the runs that it counts."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from hopscope.view import links
from tests.view import experiment


def cells(client: TestClient, name: str = experiment.NAME) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/figures/failures/{name}").json()["data"][
        "values"
    ]
    return found


def listed(page: str) -> list[str]:
    return re.findall(r'<tr><td><a href="/runs/(\w+)">', page)


def test_a_mark_leads_to_as_many_runs_as_it_counts(client: TestClient) -> None:
    marks = cells(client)
    assert {row["error"] for row in marks} == {"retriever", "extraction", "hallucination"}
    assert {row["step"] for row in marks} >= {"run", "0"}
    for row in marks:
        address = links.of_experiment(experiment.NAME, row)
        assert address is not None
        chosen = {name: row[name] for name in ("error", "step", "hops")}
        told = client.get(f"/api/failures/{experiment.NAME}", params=chosen).json()
        assert len(told) == round((row["share"] or 0) * row["answers"])
        assert listed(client.get(address).text) == [each["errors"]["id"] for each in told]
        for each in told:
            place = [e for e in each["errors"]["errors"] if str(e["step"]) in (row["step"], "None")]
            assert any(e["errors"][row["error"]] for e in place if e["errors"])


def test_the_runs_of_a_kind_of_error_are_those_of_hopscope_errors(client: TestClient) -> None:
    every = client.get(f"/api/failures/{experiment.NAME}").json()
    wrong = client.get(f"/api/failures/{experiment.NAME}?error=extraction").json()
    assert [each for each in every if each in wrong] == wrong
    assert {each["errors"]["system"] for each in every} == {"naive", "ircot"}
    assert {"id", "system", "question", "answer", "verdict", "errors"} == {*every[0]["errors"]}


def test_the_table_behind_a_picture_leads_where_its_marks_do(client: TestClient) -> None:
    """With a keyboard nobody follows a mark."""
    page = client.get(f"/fragments/failures/{experiment.NAME}").text
    first = cells(client)[0]
    address = links.of_experiment(experiment.NAME, first)
    assert address is not None
    assert f'<a href="{address.replace("&", "&amp;")}">its runs</a>' in page
    assert page.count(">its runs</a>") == len(cells(client))
    for figure, told in (
        ("workflows", "its runs"),
        ("trust", "the run"),
        ("frontier", "its runs"),
        ("searches", "its runs"),
    ):
        assert f">{told}</a>" in client.get(f"/fragments/{figure}/{experiment.NAME}").text


def test_a_step_of_a_run_is_led_to_on_its_page(client: TestClient, run: str) -> None:
    page = client.get(f"/runs/{run}").text
    assert '<a href="#step-1">the step</a>' in page
    assert 'id="step-1"' in page


def test_a_filter_that_is_none_is_told(client: TestClient) -> None:
    answer = client.get(f"/failures/{experiment.NAME}?error=luck")
    assert answer.status_code == 400
    assert "choose from retriever, extraction, hallucination" in answer.text
    assert client.get(f"/api/failures/{experiment.NAME}?error=luck").status_code == 422
    none = client.get(f"/failures/{experiment.NAME}?step=99")
    assert "No run has these failures." in none.text
    assert client.get("/failures/nothing").status_code == 404


@pytest.mark.parametrize(
    "row",
    [
        {"run": '"><script>'},
        {"system": "a&b=1", "hops": "2"},
        {"error": "retriever", "step": "run", "hops": "<"},
        {"step": "0 <script>"},
    ],
)
def test_links_hold_no_stored_text_as_it_is(row: dict[str, Any]) -> None:
    name = "//evil.example/\"'<&?#"
    for found in (links.of_experiment(name, row), links.of_run(row)):
        assert found is None or re.fullmatch(r"(/|#step-)[\w./?=&%+~-]*", found)
        assert not (found or "").startswith("//")


def test_hostile_questions_are_shown_in_the_list(client: TestClient) -> None:
    page = client.get("/failures/hostile?" + urlencode({"error": "retriever"})).text
    assert listed(page)
    assert "<script>alert" not in page
    assert "[U+202E]" in page
