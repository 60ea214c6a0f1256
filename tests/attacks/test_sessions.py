"""Stolen, fixated and forged sessions, revoked tokens, and pages of other sites."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.reliability.browsers import BrowserSession
from tests.servers.people import BOB, GUESTS, PASSWORD
from tests.servers.service import Service
from tests.servers.waiting import PATIENCE_S
from tests.servers.websocket import connect, receive

ME = "/api/v1/me"
SIGNED_OUT = 4401


@pytest.fixture
def email(service: Service) -> str:
    return service.newcomer(GUESTS)


@pytest.fixture
def page(service: Service, email: str) -> BrowserSession:
    return BrowserSession(service, email)


@pytest.fixture(scope="module")
def shared_page(attacked: Service) -> BrowserSession:
    """Return a session for all tests that do not change it, because sign-ins are rate-limited."""
    return BrowserSession(attacked, BOB)


def asks(socket: ClientConnection) -> str:
    socket.send('{"type": "ping"}')
    return str(receive(socket, "pong")["type"])


def close_code(socket: ClientConnection) -> int:
    try:
        while True:
            socket.recv(timeout=PATIENCE_S)
    except ConnectionClosed:
        return int(socket.close_code or 0)


def as_page(service: Service, cookie: str, origin: str | None = None) -> ClientConnection:
    return connect(service.ws_url, additional_headers={"Cookie": cookie}, origin=origin or service.url)


def as_program(service: Service, token: str) -> ClientConnection:
    return connect(service.ws_url, additional_headers={"Authorization": f"Bearer {token}"})


def test_a_session_id_chosen_by_the_client_is_never_signed_in(service: Service, email: str) -> None:
    chosen = "a" * 32
    with service.client() as browser:
        browser.cookies.set("sessionid", chosen)
        browser.get("/accounts/login/")
        token = browser.cookies["csrftoken"]
        form = {"login": email, "password": PASSWORD, "csrfmiddlewaretoken": token}
        answer = browser.post("/accounts/login/", data=form, headers={"Origin": service.url})
        assert answer.status_code == 302
        [own] = {cookie for cookie in answer.headers.get_list("set-cookie") if "sessionid" in cookie}
        assert chosen not in own
    assert service.client().get(ME, headers={"Cookie": f"sessionid={chosen}"}).status_code == 401


def test_signing_in_changes_the_session_and_signing_out_ends_it(service: Service, email: str) -> None:
    first, page = BrowserSession(service, email), BrowserSession(service, email)
    assert page.client.cookies["sessionid"] != first.client.cookies["sessionid"]
    stolen = page.cookie
    page.sign_out()
    assert service.client().get(ME, headers={"Cookie": stolen}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-CSRFToken": "a" * 32},
        {"Origin": "https://evil.example", "X-CSRFToken": "own"},
        {"Origin": "null", "X-CSRFToken": "own"},
        {"Content-Type": "text/plain"},
    ],
)
def test_a_page_of_another_site_cannot_write(
    shared_page: BrowserSession, service: Service, headers: dict[str, str]
) -> None:
    page = shared_page
    sent = {name: page.csrf_token if value == "own" else value for name, value in headers.items()}
    for method, path in (("POST", "/api/v1/conversations"), ("PATCH", ME), ("DELETE", ME)):
        answer = page.client.request(method, path, content=b"{}", headers=sent)
        assert answer.status_code == 403, (method, path)
        assert answer.json()["error"]["code"] == "csrf_failed"
    assert page.client.get("/api/v1/conversations").json()["items"] == []


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null", "http://localhost"])
def test_a_page_of_another_site_cannot_open_a_socket(
    shared_page: BrowserSession, service: Service, origin: str
) -> None:
    with pytest.raises(InvalidStatus):
        as_page(service, shared_page.cookie, origin).close()


def test_a_cookie_without_an_origin_cannot_open_a_socket(
    shared_page: BrowserSession, service: Service
) -> None:
    with pytest.raises(InvalidStatus):
        connect(service.ws_url, additional_headers={"Cookie": shared_page.cookie}).close()


@pytest.mark.parametrize(
    "place", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1"]
)
def test_signing_in_never_redirects_to_another_site(service: Service, place: str) -> None:
    with service.client() as browser:
        browser.get("/accounts/login/")
        token = browser.cookies["csrftoken"]
        form = {"login": BOB, "password": PASSWORD, "csrfmiddlewaretoken": token, "next": place}
        answer = browser.post("/accounts/login/", data=form, headers={"Origin": service.url})
        assert answer.headers["location"] == "/"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80"])
def test_a_request_for_another_host_is_refused(service: Service, host: str) -> None:
    answer = service.client().get("/accounts/login/", headers={"Host": host})
    assert answer.status_code == 400
    assert "evil" not in answer.text


def test_revoking_a_token_closes_only_its_own_connections_at_once(
    page: BrowserSession, service: Service
) -> None:
    made: list[dict[str, Any]] = [
        page.call("POST", "/api/v1/tokens", name=name, scopes=["chat", "read"]).json() for name in "ab"
    ]
    revoked, kept = (as_program(service, token["token"]) for token in made)
    tab = as_page(service, page.cookie)
    with revoked, kept, tab:
        assert {asks(socket) for socket in (revoked, kept, tab)} == {"pong"}
        assert page.call("DELETE", f"/api/v1/tokens/{made[0]['id']}").status_code == 204
        assert close_code(revoked) == SIGNED_OUT
        assert service.client(made[0]["token"]).get(ME).status_code == 401
        assert {asks(socket) for socket in (kept, tab)} == {"pong"}
        page.sign_out()
        assert close_code(tab) == SIGNED_OUT
        assert asks(kept) == "pong"


def test_a_stolen_token_gives_no_lasting_access(page: BrowserSession, service: Service) -> None:
    token = page.call("POST", "/api/v1/tokens", scopes=["chat", "read", "memory"]).json()["token"]
    with service.client(token) as thief:
        assert thief.post("/api/v1/tokens", json={"password": PASSWORD}).status_code == 403
        assert thief.request("DELETE", ME, json={"password": PASSWORD}).status_code == 403
        listens = thief.post("/api/v1/webhooks", json={"url": "https://thief.example.com/"})
        assert listens.status_code == 201
        assert thief.get("/accounts/password/change/").status_code == 302, "the pages know no tokens"
    [mine] = [
        row for row in page.call("GET", "/api/v1/tokens").json()["items"] if token.startswith(row["prefix"])
    ]
    assert page.call("DELETE", f"/api/v1/tokens/{mine['id']}").status_code == 204
    hooks = page.call("GET", "/api/v1/webhooks").json()["items"]
    assert listens.json()["id"] not in {row["id"] for row in hooks}, "it would be told of every later message"


def test_a_stolen_session_gives_no_lasting_access_without_the_password(service: Service, email: str) -> None:
    """The session is from a browser that has not signed in during the last minutes."""
    with service.client() as thief:
        for name, value in service.cookies[email].items():
            thief.cookies.set(name, value)
        thief.get("/")
        token = thief.get("/accounts/password/change/").text.partition('csrfmiddlewaretoken" value="')[2][:64]
        form = {"csrfmiddlewaretoken": token, "email": "thief@example.com", "action_add": ""}
        answer = thief.post("/accounts/email/", data=form, headers={"Origin": service.url})
        assert answer.status_code == 302
        assert answer.headers["location"].startswith("/accounts/reauthenticate/")
        assert "thief@example.com" not in thief.get("/accounts/email/").text
        made = thief.post("/api/v1/tokens", json={}, headers={"X-CSRFToken": token, "Origin": service.url})
        assert made.json()["error"]["code"] == "password_needed"
        headers = {"X-CSRFToken": token, "Origin": service.url}
        listens = thief.post("/api/v1/webhooks", json={"url": "https://thief.example.com/"}, headers=headers)
        assert listens.json()["error"]["code"] == "password_needed"
