"""Pages: lists with filters, runs with their steps, experiments, comparisons, labels."""

import re
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from hopscope.store.store import Store
from tests.view import experiment
from tests.view.server.test_guarding import token


def questions(page: str) -> list[str]:
    """The questions of a list of runs."""
    return re.findall(r'<a href="/runs/\w+"><bdi>(.*?)</bdi>', page)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("", 6),
        ("workflow=naive", 3),
        ("experiment=towns", 4),
        ("experiment=towns&arm=ircot", 2),
        ("experiment=towns&hops=1", 2),
        ("status=failed", 0),
        ("gain=positive&workflow=&status=", 6),
        ("gain=unmeasured", 0),
        ("search=wilby", 4),
        ("search=%25", 0),
        ("size=2&page=2", 2),
    ],
)
def test_the_list_of_runs_is_filtered(query: str, runs: int, client: TestClient) -> None:
    answer = client.get(f"/?{query}")
    assert answer.status_code == 200
    assert len(questions(answer.text)) == runs


def test_the_list_of_runs_is_ordered(client: TestClient) -> None:
    up = questions(client.get("/?experiment=towns&sort=question&descending=false").text)
    assert up == sorted(up)
    rows = client.get("/api/runs?sort=gain").json()["runs"]
    gains = [row["seper_delta"] for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert len(set(gains)) == 2


@pytest.mark.parametrize("query", ["hops=x", "sort=nothing", "page=0", "size=100000", "bogus=1"])
def test_a_wrong_filter_is_told(query: str, client: TestClient) -> None:
    answer = client.get(f"/?{query}")
    assert answer.status_code == 400
    assert "the filter" in answer.text


def test_a_run_shows_its_steps_with_texts_credit_and_marks(client: TestClient, run: str) -> None:
    page = client.get(f"/runs/{run}").text
    assert page.count('<li class="step ') == 3
    assert 'class="step helped" id="step-0"' in page
    assert "SePer +0.20" in page
    assert "SePer +0.60" in page
    assert 'class="step wasted" id="step-2"' in page
    assert "costs much, brings nothing" in page
    assert "text of a" in page
    assert 'badge already-there">already there' in page
    assert page.count('class="part"') == 3 + 4
    assert page.count("<figure") == 4


def test_an_experiment_loads_its_pictures_afterwards(client: TestClient) -> None:
    page = client.get(f"/experiments/{experiment.NAME}").text
    sources = re.findall(r'data-src="(.*?)"', page)
    assert len(sources) == 6
    for source in sources:
        answer = client.get(source)
        assert answer.status_code == 200
        assert "<table" in answer.text, source


def test_hostile_text_is_shown_and_not_obeyed(client: TestClient, store: Store) -> None:
    hostile = next(each.id for each in store.runs() if "script" in each.question)
    for path in ("/", f"/runs/{hostile}", "/experiments/hostile", "/fragments/tables/hostile"):
        page = client.get(path).text
        assert "alert(1)</script" not in page
        assert not {"\u202e", "\x1b", "\u2028"} & set(page)
    assert "[U+202E]" in client.get(f"/runs/{hostile}").text


@pytest.mark.parametrize("name", ["<script>", "../../etc/passwd", "a\x00b", "%"])
def test_a_hostile_name_is_told_and_escaped(name: str, client: TestClient) -> None:
    for path in ("runs", "experiments"):
        answer = client.get(f"/{path}/{quote(name, safe='')}")
        assert answer.status_code in (400, 404)
        assert "<script>" not in answer.text.replace('<script src="', "")


def test_two_runs_of_a_question_stand_beside_each_other(client: TestClient, store: Store) -> None:
    items = store.experiments.items(experiment.NAME)
    a, b, c = [item.outcome.run_id for item in items if item.outcome][:3]
    page = client.get(f"/compare/runs?a={a}&b={b}").text
    assert page.count("No such step") == 2
    answer = client.get(f"/compare/runs?a={a}&b={c}")
    assert answer.status_code == 400
    assert "different questions" in answer.text


def test_two_experiments_are_compared_with_a_baseline(client: TestClient) -> None:
    page = client.get("/compare/experiments?baseline=towns&other=hostile").text
    for heading in ("Means over", "Differences on the same", "Right in one system", "Flipped"):
        assert heading in page


def test_a_label_is_stored_with_who_and_when(client: TestClient, run: str, store: Store) -> None:
    form = {"token": token(client, run), "place": "1", "label": "useful", "note": "<b>found</b>"}
    answer = client.post(f"/runs/{run}/labels", data={**form, "author": "Ada"})
    assert answer.status_code == 303
    [label] = [each for each in store.labels.of([run])[run] if each.author == "Ada"]
    assert (label.step, label.label, label.note) == (1, "useful", "<b>found</b>")
    assert label.source == "view"
    page = client.get(answer.headers["location"]).text
    assert "&lt;b&gt;found&lt;/b&gt;" in page
    assert f"{label.made:%Y-%m-%d %H:%M}" in page


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "choose a judgment"),
        ({"place": "9", "label": "right"}, "names no step"),
        ({"label": "splendid"}, "is no judgment"),
        ({"note": "x" * 10_001}, "10001 characters"),
    ],
)
def test_a_form_that_says_nothing_is_told(
    given: dict[str, str], told: str, client: TestClient, run: str
) -> None:
    answer = client.post(f"/runs/{run}/labels", data={"token": token(client, run), **given})
    assert answer.status_code == 400
    assert told in answer.text


def test_a_form_that_is_too_long_is_not_read(client: TestClient, run: str) -> None:
    answer = client.post(f"/runs/{run}/labels", content=b"x" * 1_000_000)
    assert answer.status_code == 413


def test_files_are_served_and_no_others(client: TestClient) -> None:
    assert "vegaEmbed" in client.get("/static/view.js").text
    for name in ("app.py", "..%2Fhtml.py", "base.html"):
        assert client.get(f"/static/{name}").status_code == 404
