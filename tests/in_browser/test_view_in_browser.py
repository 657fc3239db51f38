"""The local view as a person uses it, in Chromium: with a mouse, a keyboard, a phone, a reader."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from hopscope.store.store import Store
from tests.in_browser.conftest import HOPLAND, Served
from tests.view import experiment
from tests.view.experiment import NAME

PAGES = ("/", "/runs/{run}", f"/experiments/{HOPLAND}", f"/failures/{NAME}")
PICTURES = {"/": 0, "/runs/{run}": 4, f"/failures/{NAME}": 0}


def asked(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def drawn(page: Any, pictures: int) -> None:
    """Wait until all pictures are drawn."""
    expect(page.locator("figure.picture[data-drawn]")).to_have_count(pictures, timeout=60_000)


def ircot(store: Store, name: str = HOPLAND) -> str:
    items = store.experiments.items(name)
    return next(item.outcome.run_id for item in items if item.arm == "ircot" and item.outcome)


def test_from_the_list_to_a_run(page: Any, served: Served) -> None:
    page.goto(served.address)
    page.locator("select[name=experiment]").select_option(HOPLAND)
    page.locator("select[name=workflow]").select_option("ircot")
    page.get_by_role("button", name="Filter").click()
    rows = page.locator("tbody tr", has=page.get_by_role("radio"))
    assert rows.count() == 2
    question = rows.nth(0).get_by_role("link").inner_text()
    rows.nth(0).get_by_role("link").click()
    assert page.locator("h1").inner_text() == question
    drawn(page, 4)


def test_switching_a_step_off_shows_the_numbers_of_the_api(
    page: Any, served: Served, store: Store
) -> None:
    run = ircot(store)
    page.goto(f"{served.address}/runs/{run}")
    switch = page.locator("input.part").first
    part = switch.get_attribute("value")
    switch.check()
    result = page.locator("#whatif-result")
    result.locator("table").first.wait_for()
    for row in asked(f"{served.address}/api/runs/{run}/without?part={part}"):
        line = result.locator("tr", has_text=row["meter"]).first.locator("td")
        shown = [line.nth(place).inner_text() for place in (1, 2, 3)]
        values = [row["full"], row["value"], row["difference"]]
        assert shown == ["-" if value is None else f"{value:.3f}" for value in values]
    switch.uncheck()
    expect(result).to_have_text("Nothing is switched off.")


def test_switching_a_step_off_changes_the_answers_at_once(
    page: Any, served: Served, store: Store
) -> None:
    """From stored coalitions: the masses are those of the API."""
    run = ircot(store)
    page.goto(f"{served.address}/runs/{run}")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    switches = page.locator("input.part")
    for place in range(switches.count()):
        switches.nth(place).check()
    parts = [switches.nth(place).get_attribute("value") for place in range(switches.count())]
    steps = [part for part in parts if part and not part.startswith("p:")]
    for place, part in enumerate(parts):
        if part not in steps:
            switches.nth(place).uncheck()
    query = "&".join(f"part={part}" for part in steps)
    found = page.locator("#whatif-result table", has_text="Sampled answers")
    expect(page.locator("#whatif-result")).to_contain_text(f"Without {', '.join(steps)}:")
    told = asked(f"{served.address}/api/runs/{run}/without?{query}")
    row = next(each for each in told if each["answers"])
    for group in row["answers"]:
        line = found.locator("tr", has_text=group["answer"]).first
        assert line.locator("td").nth(3).inner_text() == f"{group['mass']:.2f}"
    right = [group["answer"] for group in row["full_answers"] if group["right"]]
    assert found.locator("tr", has_text="right").count() == 1 + len(right)  # with the heading
    assert all("/api/runs/" in url for url in requests)


def test_key_tokens_are_marked_and_told(page: Any, served: Served, store: Store) -> None:
    run = ircot(store)
    page.goto(f"{served.address}/runs/{run}")
    contexts = asked(f"{served.address}/api/runs/{run}")["contexts"]
    rows = page.locator("section.contexts > .wide tbody tr")
    assert rows.count() == len(contexts)
    for place, context in enumerate(contexts):
        keys = [token["text"].strip() for token in context["tokens"] if token["key"]]
        marks = [text.strip() for text in rows.nth(place).locator("mark").all_inner_texts()]
        assert marks == keys
        spoken = f"key tokens: {', '.join(keys)}"
        assert rows.nth(place).locator(".spoken").text_content().strip() == spoken
    page.get_by_text("Table of the tokens").focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Tokens of the answers").locator("tbody tr")
    assert table.first.is_visible()
    assert table.count() == sum(len(context["tokens"]) for context in contexts)


def test_a_mark_leads_to_its_run(page: Any, served: Served, store: Store) -> None:
    page.goto(f"{served.address}/experiments/{NAME}")
    drawn(page, 5)
    chart = page.locator("#figure-trust canvas")
    place = page.evaluate(
        """() => {
            const view = document.querySelector("#figure-trust .chart").view;
            const [x, y] = view.origin();
            const { left, top } = view.padding();
            const find = (item) => item.datum && item.datum.run ? item
                : (item.items || []).map(find).find(Boolean);
            const mark = find(view.scenegraph().root);
            return { x: x + left + mark.x, y: y + top + mark.y };
        }"""
    )
    chart.click(position={"x": place["x"], "y": place["y"]})
    page.wait_for_url("**/runs/*")
    # Equal runs lie on top of each other, so it may be another one of the experiment.
    outcomes = [item.outcome for item in store.experiments.items(NAME)]
    assert page.url.rpartition("/")[2] in [each.run_id for each in outcomes if each]


def test_a_failure_leads_to_its_runs_by_mouse_and_by_keyboard(page: Any, served: Served) -> None:
    page.goto(f"{served.address}/experiments/{NAME}")
    drawn(page, 5)
    place = page.evaluate(
        """() => {
            const view = document.querySelector("#figure-failures .chart").view;
            const [x, y] = view.origin();
            const { left, top } = view.padding();
            const find = (item, dx, dy) => {
                const [ix, iy] = [dx + (item.x || 0), dy + (item.y || 0)];
                if (item.datum && item.datum.error && item.datum.href && item.width) {
                    const { href } = item.datum;
                    return { x: ix + item.width / 2, y: iy + item.height / 2, href };
                }
                return (item.items || []).map((each) => find(each, ix, iy)).find(Boolean);
            };
            const mark = find(view.scenegraph().root, 0, 0);
            return { x: mark.x + x + left, y: mark.y + y + top, href: mark.href };
        }"""
    )
    page.locator("#figure-failures canvas").click(position={"x": place["x"], "y": place["y"]})
    page.wait_for_url("**/failures/*")
    assert page.url == served.address + place["href"]
    page.go_back()
    drawn(page, 5)
    table = page.locator("#figure-failures")
    table.locator("summary").focus()
    page.keyboard.press("Enter")
    link = table.get_by_role("link", name="its runs").first
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/failures/*")
    page.locator("select[name=error]").select_option("hallucination")
    page.locator("select[name=step]").select_option("run")
    page.get_by_role("button", name="Filter").press("Enter")
    page.wait_for_url("**error=hallucination**")
    query = "error=hallucination&step=run"
    hops = page.locator("select[name=hops]").input_value()
    told = asked(f"{served.address}/api/failures/{NAME}?{query}&hops={hops}")
    assert page.locator("tbody tr").count() == len(told)


def test_a_person_labels_a_step_by_keyboard(page: Any, served: Served, store: Store) -> None:
    run = ircot(store)
    page.goto(f"{served.address}/runs/{run}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.locator("select[name=place]").focus()
    page.keyboard.type("step 0")
    page.keyboard.press("Tab")
    page.keyboard.type("useful")
    page.keyboard.press("Tab")
    page.keyboard.type("found the mayor")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    page.get_by_text("found the mayor").wait_for()
    [label] = [each for each in store.labels.of([run])[run] if each.author == "Ada"]
    assert (label.step, label.label, label.note) == (0, "useful", "found the mayor")


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "polling"])
def test_progress_follows_the_work(
    streams: bool, page: Any, served: Served, store: Store, told: list[str]
) -> None:
    """By one stream of events; where the server gives none, by asking again and again."""
    name = f"live-{streams}"
    plan = store.experiments.find(NAME).model_copy(update={"name": name})
    entries = [item.entry for item in store.experiments.items(NAME)[:1]]
    store.experiments.add(plan, entries)
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    if not streams:
        page.route("**/api/events*", lambda route: route.fulfill(status=503))
    page.goto(f"{served.address}/experiments/{name}")
    progress = page.locator("#progress")
    expect(progress).to_have_text("0 of 2")
    expect(page.locator("#figure-workflows")).to_have_count(0)
    session = store.experiments.begin_session(name, owner="here", environment={})
    for claimed in store.experiments.claim(session, 2):
        place = 100 + 10 * streams + claimed.position
        run = experiment.run(place, claimed.entry.question, claimed.arm.workflow)
        store.experiments.complete(session, claimed, run)
    expect(progress).to_have_text("2 of 2", timeout=30_000)
    expect(page.locator("#figure-workflows[data-drawn]")).to_have_count(1, timeout=30_000)
    assert len([url for url in asked_for if "/api/events?" in url]) == 1
    assert any("/api/progress/" in url for url in asked_for) != streams
    told[:] = [each for each in told if "503" not in each]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(
    path: str, scheme: str, page: Any, served: Served, store: Store, told: list[str]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.goto(served.address + path.format(run=ircot(store)))
    drawn(page, PICTURES.get(path, 5))
    found = Axe().run(page).response["violations"]
    assert [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_shows_the_whole_width(path: str, page: Any, served: Served, store: Store) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(served.address + path.format(run=ircot(store)))
    drawn(page, PICTURES.get(path, 5))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_hostile_text_runs_nowhere(page: Any, served: Served, store: Store) -> None:
    """A dialog, a violated policy or an error in the console fails it."""
    page.goto(f"{served.address}/runs/{ircot(store, 'hostile')}")
    drawn(page, 4)
    assert "<script>alert(1)</script>[U+202E]" in page.locator("h1").inner_text()
    page.goto(f"{served.address}/experiments/hostile")
    drawn(page, 5)


def test_a_report_is_drawn_from_its_file_without_a_request(
    page: Any, served: Served, store: Store, tmp_path: Path
) -> None:
    from hopscope.view.report import report

    for source, pictures in ((ircot(store), 4), (HOPLAND, 5)):
        file = tmp_path / f"{source}.html"
        file.write_text(report(store, source), encoding="utf-8")
        requests: list[str] = []
        page.on("request", lambda request, to=requests: to.append(request.url))
        page.goto(file.as_uri())
        drawn(page, pictures)
        assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
