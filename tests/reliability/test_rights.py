"""Connections end when their user's rights end. Only our own pages and programs with a token can connect."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.reliability.browsers import BrowserSession
from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader, SseReader
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.people import LEAVERS
from tests.servers.waiting import PATIENCE_S, wait_for
from tests.servers.websocket import connect, receive

SIGNED_OUT = 4401

BY_OPERATORS = """
from chatapp.accounts.models import ApiToken, User
from chatapp.forgetting.accounts import delete_account
from chatapp.operations import clock
for user in User.objects.filter(email={deactivated!r}):
    user.is_active = False
    user.save()
delete_account(User.objects.get(email={deleted!r}), now=clock.now())
User.objects.filter(email={updated!r}).update(is_active=False)
ApiToken.objects.filter(user__email={revoked!r}).delete()
"""


def open_readers(installation: Installation, email: str) -> list[SocketReader | SseReader]:
    """Return readers of a new conversation of this user, connected to the second process."""
    conversation = Person(installation.client(installation.first, email)).new_conversation(title="Mine")
    readers: list[SocketReader | SseReader] = [
        kind(installation.second, installation.tokens[email], conversation)
        for kind in (SocketReader, SseReader)
    ]
    Person(installation.client(installation.first, email)).client.patch(
        f"/api/v1/conversations/{conversation}", json={"title": "Ours"}
    )
    for reader in readers:
        reader.wait_for(lambda story: story.facts, "the reader is there")
    return readers


@pytest.mark.mechanism("contract.rights")
def test_users_who_lose_their_rights_lose_their_connections(
    installation: Installation, script: Script
) -> None:
    """An operator's command in another process takes the rights. A deleted user's answer in progress ends, too."""
    key = new_key("leaving")
    script.answer(key, slowly(words(900), rate=25))
    numbers = range(0, 4) if installation.is_production else range(4, 8)
    deactivated, deleted, updated, revoked = (LEAVERS[number] for number in numbers)
    readers = {email: open_readers(installation, email) for email in (deactivated, deleted, updated, revoked)}
    staying = open_readers(installation, PEOPLE[0])
    names = {"deactivated": deactivated, "deleted": deleted, "updated": updated, "revoked": revoked}
    leaver = Person(installation.client(person=deleted))
    leaver.send(leaver.new_conversation(), key)
    script.wait_for_request(key, event="first_token")
    installation.first.manage("shell", "-v", "0", "-c", BY_OPERATORS.format(**names))
    for email, (socket, stream) in readers.items():
        assert socket.wait_for_close() == SIGNED_OUT
        stream.wait_for_close()
        assert stream.story.notices[-1]["code"] == "signed_out"
        headers = {"Authorization": f"Bearer {installation.tokens[email]}"}
        assert not is_let_in(installation, headers)
        assert installation.client(person=email).get("/api/v1/me").status_code == 401
    script.wait_for_request(key, event="lost")
    for reader in staying:
        assert not getattr(reader, "close_code", None)
        reader.close()


def test_signing_out_or_revoking_a_token_closes_connections_at_other_processes(
    installation: Installation,
) -> None:
    session = BrowserSession(installation.first, PEOPLE[1])
    page = connect(
        installation.second.ws_url,
        additional_headers={"Cookie": session.cookie},
        origin=installation.second.url,
    )
    made = session.call("POST", "/api/v1/tokens", name="soon revoked", scopes=["chat", "read"])
    assert made.status_code == 201, made.text
    with page as socket:
        socket.send('{"type": "ping"}')
        receive(socket, "pong")
        conversation = Person(installation.client(person=PEOPLE[1])).new_conversation()
        program = SocketReader(installation.second, made.json()["token"], conversation)
        program.tell({"type": "ping"})
        program.wait_for(lambda story: story.notices, "a pong")
        assert session.call("DELETE", f"/api/v1/tokens/{made.json()['id']}").status_code == 204
        assert program.wait_for_close() == SIGNED_OUT
        socket.send('{"type": "ping"}')
        receive(socket, "pong")  # Revoking the token leaves the browser's socket open.
        session.sign_out()
        assert closed_with(socket) == SIGNED_OUT


def closed_with(socket, frame: str = "") -> int:
    """Wait until the socket is closed, perhaps before all of `frame` is sent, and return the code."""
    try:
        if frame:
            socket.send(frame)
        while True:
            socket.recv(timeout=PATIENCE_S)
    except ConnectionClosed:
        return int(socket.close_code)


ORIGINS = {
    "another port": lambda url: "http://127.0.0.1:9",
    "another scheme": lambda url: url.replace("http://", "https://"),
    "another host": lambda url: "http://evil.example.com",
    "a host that begins like ours": lambda url: "http://127.0.0.1.evil.example.com",
    "localhost for 127.0.0.1": lambda url: url.replace("127.0.0.1", "localhost"),
    "null": lambda url: "null",
    "none at all": lambda url: None,
}


@pytest.mark.parametrize("name", ORIGINS)
def test_other_origins_cannot_use_a_session_cookie(embedded: Installation, name: str) -> None:
    origin = ORIGINS[name](embedded.first.url)
    assert not is_let_in(embedded, {"Cookie": session_of(embedded)}, origin)


def test_our_own_origin_can_open_a_socket(embedded: Installation) -> None:
    assert is_let_in(embedded, {"Cookie": session_of(embedded)}, embedded.first.url)


def test_a_configured_public_url_is_the_only_allowed_origin(embedded: Installation) -> None:
    embedded.first.stop()
    embedded.first.env["PUBLIC_URL"] = "https://chat.example.com"
    try:
        embedded.first.arguments[-1] = str(embedded.first.port)
        embedded.first.launch()
        wait_for(embedded.first.is_ready, what="/readyz")
        token = {"Authorization": f"Bearer {embedded.tokens[PEOPLE[0]]}"}
        for origin, is_ours in (
            ("https://chat.example.com", True),
            ("http://chat.example.com", False),
            ("https://chat.example.com:8443", False),
            (embedded.first.url, False),
        ):
            assert is_let_in(embedded, token, origin) == is_ours, origin
    finally:
        embedded.first.stop()
        del embedded.first.env["PUBLIC_URL"]


def is_let_in(installation: Installation, headers: dict[str, str], origin: str | None = None) -> bool:
    try:
        with connect(installation.first.ws_url, additional_headers=headers, origin=origin) as socket:
            socket.send('{"type": "ping"}')
            return bool(receive(socket, "pong"))
    except InvalidStatus as refused:
        status = refused.response.status_code
    assert status == 403
    return False


def session_of(installation: Installation) -> str:
    if installation.name not in _sessions:
        _sessions[installation.name] = BrowserSession(installation.first, PEOPLE[0]).cookie
    return _sessions[installation.name]


_sessions: dict[str, str] = {}


def test_a_frame_that_is_too_large_closes_the_socket_with_a_reason(embedded: Installation) -> None:
    headers = {"Authorization": f"Bearer {embedded.tokens[PEOPLE[0]]}"}
    with connect(embedded.first.ws_url, additional_headers=headers) as socket:
        assert closed_with(socket, json.dumps({"type": "ping", "padding": "x" * 2**21})) == 1009
        assert "1,048,576 bytes" in socket.close_reason
        assert "HTTP" in socket.close_reason


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "no json",
        "[]",
        '{"type": "dance"}',
        '{"type": "message.send"}',
        '{"type": "subscribe", "conversation_id": "../../etc"}',
        '{"type": "message.sync", "message_id": "\\u0000", "length": 0}',
        '{"type": "run.stop", "run_id": "\\ud800"}',
        '{"type": "subscribe", "conversation_id": "x", "after_seq": -1}',
    ],
)
def test_an_invalid_frame_gets_an_error_and_the_socket_stays_open(embedded: Installation, frame: str) -> None:
    headers = {"Authorization": f"Bearer {embedded.tokens[PEOPLE[0]]}"}
    with connect(embedded.first.ws_url, additional_headers=headers) as socket:
        socket.send(frame)
        assert receive(socket, "error")["message"]
        socket.send('{"type": "ping"}')
        receive(socket, "pong")


@pytest.mark.parametrize(
    ("content", "client_id"), [("a\x00b", "k"), ("\ud83d", "k"), ("ok", "a\x00b"), ("ok", "\ud83d")]
)
def test_text_that_no_database_can_store_is_refused_or_repaired(
    installation: Installation, content: str, client_id: str
) -> None:
    alice = Person(installation.client())
    conversation = alice.new_conversation()
    body = {"content": content, "client_id": new_key(client_id)}
    frame = {**body, "type": "message.send", "conversation_id": conversation}
    headers = {"Authorization": f"Bearer {installation.tokens[PEOPLE[0]]}"}
    with connect(installation.first.ws_url, additional_headers=headers) as socket:
        socket.send(json.dumps(frame))
        receive(socket, "ack", "error")
    path = f"/api/v1/conversations/{alice.new_conversation()}/messages"
    body["client_id"] = new_key(client_id)
    answer = alice.client.post(
        path, content=json.dumps({**body, "stream": False}), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (200, 422), answer.text
