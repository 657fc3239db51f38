"""The server answers this computer's pages, and nobody else's."""

import re

import pytest
from starlette.testclient import TestClient

from hopscope.store.store import Store
from hopscope.view.server.app import application
from hopscope.view.server.guarding import HEADERS, names
from tests.view.server.conftest import ADDRESS, PORT

FORM = {"place": "answer", "label": "right", "note": ""}


def token(client: TestClient, run: str) -> str:
    [found] = re.findall(r'name="token" value="(\w+)"', client.get(f"/runs/{run}").text)
    return str(found)


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", ""])
def test_another_host_is_refused(host: str, client: TestClient) -> None:
    """A site whose name leads to 127.0.0.1 could read all runs."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "Runs" not in answer.text


def test_names_of_this_computer_are_answered(client: TestClient) -> None:
    assert client.get("/", headers={"host": f"localhost:{PORT}"}).status_code == 200
    assert names("::1", 80) >= {"[::1]", "[::1]:80", "localhost"}


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/view.css", "/nothere", "/runs/zzz"])
def test_every_answer_carries_the_policy(path: str, client: TestClient) -> None:
    headers = client.get(path).headers
    for name in HEADERS:
        assert name in headers
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
    ],
)
def test_another_site_cannot_label(
    headers: dict[str, str], client: TestClient, run: str, store: Store
) -> None:
    form = {**FORM, "token": token(client, run), "author": "evil"}
    answer = client.post(f"/runs/{run}/labels", data=form, headers=headers)
    assert answer.status_code == 403
    assert "evil" not in [each.author for each in store.labels.of([run]).get(run, [])]


def test_a_form_without_its_token_is_refused(client: TestClient, run: str) -> None:
    """A site that sends no `Origin` is no reason to trust it."""
    for given in ({}, {"token": "x"}, {"token": token(client, "last")}):
        assert client.post(f"/runs/{run}/labels", data={**FORM, **given}).status_code == 403


def test_beyond_this_computer_a_token_is_needed(store: Store) -> None:
    app = application(store, hosts=names("192.0.2.7", PORT), token="secret")
    there = TestClient(app, base_url=f"http://192.0.2.7:{PORT}", follow_redirects=False)
    assert there.get("/").status_code == 401
    assert there.get("/?token=wrong").status_code == 401
    assert there.get("/api/runs", headers={"authorization": "Bearer secret"}).status_code == 200
    assert there.get("/").status_code == 401
    led = there.get(f"http://192.0.2.7:{PORT}//evil.example/?token=secret&page=1")
    assert (led.status_code, led.headers["location"]) == (303, "/evil.example/?page=1")
    cookie = led.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert there.get("/").status_code == 200


@pytest.mark.parametrize(
    ("host", "header"),
    [
        ("fd00::5", "[fd00::5]"),
        ("FD00:0::5", "[fd00::5]"),
        ("fe80::1%eth0", "[fe80::1]"),
        ("MyHost", "myhost"),
        ("myhost", "MyHost"),
        ("0.0.0.0", "10.1.2.3"),
        ("::", "laptop.local"),
    ],
)
def test_a_server_answers_under_the_names_of_its_address(
    host: str, header: str, store: Store
) -> None:
    """One that refuses its own name answers nobody."""
    app = application(store, hosts=names(host, PORT), token="secret")
    there = TestClient(app, base_url=ADDRESS)
    asked = {"host": f"{header}:{PORT}", "authorization": "Bearer secret"}
    assert there.get("/api/runs", headers=asked).status_code == 200
    del asked["authorization"]
    assert there.get("/api/runs", headers=asked).status_code == 401


def test_at_all_addresses_another_site_cannot_label(store: Store, run: str) -> None:
    app = application(store, hosts=names("0.0.0.0", PORT), token="secret")
    there = TestClient(app, base_url=ADDRESS, headers={"authorization": "Bearer secret"})
    form = {**FORM, "token": token(there, run)}
    answer = there.post(f"/runs/{run}/labels", data=form, headers={"origin": "http://evil.example"})
    assert answer.status_code == 403


def test_without_a_token_a_server_has_names(store: Store) -> None:
    """Without both, any site could read all runs."""
    with pytest.raises(ValueError, match="needs a token"):
        application(store, hosts=names("0.0.0.0", PORT), token="")


@pytest.mark.parametrize("foreign", ["a/b=1", 'theme={"x":1}', "=", "", "x_hopscope_token=wrong"])
def test_cookies_of_other_servers_do_not_matter(foreign: str, store: Store) -> None:
    """A browser sends those of all servers of the computer, whatever their port."""
    app = application(store, hosts=names("192.0.2.7", PORT), token="secret")
    there = TestClient(app, base_url=f"http://192.0.2.7:{PORT}")
    for cookies in (
        f"{foreign}; hopscope_token=secret",
        f"hopscope_token=secret;{foreign}",
        f"hopscope_token=old; {foreign}; hopscope_token=secret",
    ):
        assert there.get("/api/runs", headers={"cookie": cookies}).status_code == 200
    assert there.get("/api/runs", headers={"cookie": foreign}).status_code == 401


def test_a_read_only_server_has_no_form_and_takes_none(store: Store, run: str) -> None:
    app = application(store, hosts=names("127.0.0.1", PORT), read_only=True)
    there = TestClient(app, base_url=ADDRESS)
    assert '<form class="label"' not in there.get(f"/runs/{run}").text
    answer = there.post(f"/runs/{run}/labels", data=FORM)
    assert answer.status_code == 403
    assert "--read-only" in answer.text
