"""Hostile requests and frames leak nothing, break nothing and do not affect other users."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.api import odd
from tests.servers.people import ALICE
from tests.servers.service import Service
from tests.servers.waiting import PATIENCE_S
from tests.servers.websocket import connect

OUTSIDE = ("../../../secret_key", "..%2f..%2f..%2fsecret_key", "%2e%2e/%2e%2e/secret_key", "....//secret_key")
FRAMES: dict[str, dict[str, Any]] = {
    "subscribe": {"conversation_id": "", "after_seq": 0},
    "unsubscribe": {"conversation_id": ""},
    "message.send": {
        "client_id": "k",
        "conversation_id": "",
        "content": "Hi",
        "attachments": [],
        "parent": None,
        "model": None,
        "mode": "react",
    },
    "message.inject": {"client_id": "k", "conversation_id": "", "content": "Hi", "attachments": []},
    "tool.approve": {"run_id": odd.ROW_ID, "call_id": "c"},
    "tool.deny": {"run_id": odd.ROW_ID, "call_id": "c"},
    "run.stop": {"run_id": odd.ROW_ID},
    "message.sync": {"message_id": odd.ROW_ID, "length": 0},
}


def raw(service: Service, request: bytes) -> bytes:
    """Send a request on a new connection. Return everything that comes back."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as client:
        client.sendall(request)
        with client.makefile("rb") as file:
            return file.read()


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("folder", ["/static/", "/api/v1/files/", "/static/app/"])
def test_no_url_path_leads_out_of_its_folder(service: Service, folder: str, place: str) -> None:
    key = (service.data_dir / "secret_key").read_bytes()
    head = f"GET {folder}{place} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    token = f"Authorization: Bearer {service.tokens[ALICE]}\r\n\r\n"
    answer = raw(service, (head + token).encode())
    assert answer.split()[1] in (b"400", b"404"), answer[:100]
    assert key not in answer


@pytest.mark.parametrize(
    "name",
    ["../../../../tmp/evil.txt", "/etc/passwd", "a\\..\\b.txt", "..", 'x";\r\nSet-Cookie: a=b', "x" * 5_000],
)
def test_a_hostile_file_name_gets_into_no_path_or_header(service: Service, name: str) -> None:
    with service.client_of(ALICE) as alice:
        made = alice.post("/api/v1/files", files={"file": (name, b"A line of text.", "text/plain")})
        assert made.status_code in (201, 400, 422), made.text
        if made.status_code != 201:
            return
        shown = alice.get(made.json()["url"])
        assert shown.headers["content-disposition"] == f'attachment; filename="{made.json()["id"]}.txt"'
        assert "set-cookie" not in shown.headers
        assert shown.headers["x-content-type-options"] == "nosniff"
    stored = [path.name for path in (service.data_dir / "files").rglob("*") if path.is_file()]
    assert all(set(path) <= set("0123456789abcdef") for path in stored if not path.startswith(".lock"))


def test_a_hostile_title_gets_into_no_header(service: Service) -> None:
    with service.client_of(ALICE) as alice:
        made = alice.post("/api/v1/conversations", json={"title": 'x";\r\nSet-Cookie: a=b\r\n\r\n<script>'})
        shown = alice.get(f"/api/v1/conversations/{made.json()['id']}/export", params={"format": "markdown"})
        assert "set-cookie" not in shown.headers
        assert shown.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
def test_a_request_with_an_ambiguous_length_cannot_smuggle_another(service: Service, framing: bytes) -> None:
    smuggled = b"0\r\n\r\nGET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = raw(
        service, b"POST /api/v1/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\n" + framing + b"\r\n" + smuggled
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
UPGRADE += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
TWICE = {
    "Host": ("127.0.0.1", "127.0.0.1", "evil.example"),
    "Content-Type": ("application/json", "text/plain"),
    "Content-Length": ("0", "00"),
    "Authorization": ("Bearer x", "Bearer y", "Basic eDp5"),
    "Origin": ("http://127.0.0.1", "https://evil.example"),
    "X-CSRFToken": ("x", "y"),
    "Idempotency-Key": ("one", "two"),
    "Last-Event-ID": ("1", "2"),
    "Sec-WebSocket-Key": ("AQIDBAUGBwgJCgsMDQ4PEA==", "dGhlIHNhbXBsZSBub25jZQ=="),
}


@pytest.mark.parametrize("path", ["/ws/chat", "/api/v1/me", "/healthz", "/nothing"])
@pytest.mark.parametrize("name", TWICE)
def test_a_duplicate_of_a_header_that_must_be_unique_is_refused(
    service: Service, path: str, name: str
) -> None:
    for first in TWICE[name]:
        for second in TWICE[name]:
            lines = [f"{name}: {first}", f"{name.lower()}:{second}", "Connection: close"]
            if name != "Host":
                lines.append("Host: 127.0.0.1")
            upgrade = UPGRADE if path == "/ws/chat" and name != "Sec-WebSocket-Key" else ""
            head = f"GET {path} HTTP/1.1\r\n{upgrade}" + "\r\n".join(lines)
            answer = raw(service, f"{head}\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 400 "), (first, second, answer[:200])
            assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "end", ["\r\n", "\r\nExpect: 100-continue\r\nContent-Length: 9\r\n", "\r\nContent-Length: 0\r\n"]
)
def test_a_request_without_a_host_is_refused(service: Service, end: str) -> None:
    for path in ("/healthz", "/api/v1/me"):
        answer = raw(service, f"POST {path} HTTP/1.1\r\nAccept: */*{end}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
        assert answer.count(b"HTTP/1.1 ") == 1
    assert raw(service, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 ")


def test_cookies_in_several_header_lines_are_joined(service: Service) -> None:
    """A proxy sends them this way if it received them over HTTP/2 (RFC 9113, 8.2.3)."""
    session = next(f"{name}={value}" for name, value in service.cookies[ALICE].items() if "session" in name)
    for order in (["a=1", session, "b=2"], [session, "a=1"], ["a=1", session]):
        cookies = "".join(f"Cookie: {pair}\r\n" for pair in order)
        host = f"Host: 127.0.0.1:{service.port}\r\n"
        answer = raw(service, f"GET /api/v1/me HTTP/1.1\r\n{host}{cookies}Connection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:300]
        origin = f"Origin: {service.url}\r\n"
        with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as client:
            client.sendall(f"GET /ws/chat HTTP/1.1\r\n{host}{origin}{cookies}{UPGRADE}\r\n".encode())
            assert client.recv(4_096).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    "header",
    ["Daphne-Root-Path", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Original-URL", "X-HTTP-Method-Override"],
)
def test_headers_of_an_untrusted_proxy_change_nothing(service: Service, header: str) -> None:
    plain = service.client().get("/accounts/login/")
    claimed = service.client().get("/accounts/login/", headers={header: "/admin/"})
    assert claimed.status_code == plain.status_code == 200
    assert "/admin/" not in claimed.text


@pytest.mark.parametrize("path", ["/api/v1/files", "/api/v1/conversations", "/accounts/login/"])
@pytest.mark.parametrize("charset", ["rot13", "base64", "undefined", "idna", "utf-7", "no-such", "\xff"])
def test_a_form_with_an_invalid_charset_gets_a_client_error(
    service: Service, path: str, charset: str
) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xc3\xa4\xff\r\n--b--\r\n'
    forms = {"application/x-www-form-urlencoded": b"a=%ff%c3%a4", "multipart/form-data; boundary=b": part}
    with service.client_of(ALICE) as alice:
        for kind, body in forms.items():
            content_type = f"{kind}; charset={charset}".encode("latin-1")
            answer = alice.post(path, content=body, headers={"Content-Type": content_type})
            assert 400 <= answer.status_code < 500, (kind, answer.text)


def test_concurrent_uploads_beyond_the_limit_get_429(service: Service) -> None:
    """Beyond the limit of concurrent uploads per user the server responds, instead of breaking the connection."""
    token = f"Authorization: Bearer {service.tokens[ALICE]}\r\n".encode()
    head = b"POST /api/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n" + token
    head += b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 20000000\r\nExpect: 100-continue\r\n\r\n"
    held = [socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) for _ in range(7)]
    try:
        starts = []
        for client in held:
            client.sendall(head)
            starts.append(client.recv(4_096).split(b"\r\n")[0])
    finally:
        for client in held:
            client.close()
    assert starts.count(b"HTTP/1.1 100 Continue") == 6
    assert starts.count(b"HTTP/1.1 429 Too Many Requests") == 1


# --- frames ------------------------------------------------------------------------------------------


def opened(service: Service) -> ClientConnection:
    headers = {"Authorization": f"Bearer {service.tokens[ALICE]}"}
    return connect(service.ws_url, additional_headers=headers, max_size=None)


def told(client: ClientConnection, text: str) -> set[str]:
    """Send `text` and a ping. Return the types of all frames that arrive before the pong."""
    client.send(text)
    client.send('{"type": "ping"}')
    types = set()
    while True:
        frame = json.loads(client.recv(timeout=PATIENCE_S))
        if frame["type"] == "pong":
            return types
        types.add(frame["type"])


@pytest.mark.parametrize("path", ["/ws/nothing", "/ws/chat/", "/ws/%00", "/api/v1/me", "/ws/chat%2F"])
@pytest.mark.parametrize("who", ["alice", "nobody"])
def test_a_path_without_a_socket_is_refused(service: Service, path: str, who: str) -> None:
    headers = {"Authorization": f"Bearer {service.tokens[ALICE]}"} if who == "alice" else {}
    with pytest.raises(InvalidStatus) as refused:
        connect(service.ws_url.replace("/ws/chat", path), additional_headers=headers)
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_with_odd_values_does_not_close_the_socket(service: Service, kind: str) -> None:
    with service.client_of(ALICE) as alice:
        conversation = alice.post("/api/v1/conversations", json={}).json()["id"]
    valid = {"type": kind, **FRAMES[kind]}
    if "conversation_id" in valid:
        valid["conversation_id"] = conversation
    accepted = {"subscribe", "unsubscribe", "message.send", "message.inject"}
    with opened(service) as client:
        for field in valid:
            absent = json.dumps({name: value for name, value in valid.items() if name != field})
            for text in (absent, *(odd.with_field(valid, field, value) for value in odd.JSON_VALUES)):
                # Values that happen to be valid get their normal response. No value closes the socket.
                types = told(client, text)
                if not types:
                    assert kind in accepted or field != "type", text[:200]


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "NaN", '"x"', "[" * 50_000, '{"type": "nothing"}', "\u0000"]
)
def test_text_that_is_not_a_frame_is_answered_with_an_error(service: Service, text: str) -> None:
    with opened(service) as client:
        assert "error" in told(client, text)


def send_and_read_all(socket: ClientConnection, payload: str | bytes) -> None:
    """Send and read. The refusal may come before all is sent, or after events of an earlier answer."""
    socket.send(payload)
    while socket.recv(timeout=PATIENCE_S):
        pass


@pytest.mark.parametrize("payload", ["x" * (2**20 + 1), b"\xff" * (2**20 + 1)])
def test_a_giant_frame_closes_only_its_own_socket(service: Service, payload: str | bytes) -> None:
    with opened(service) as giant, opened(service) as other:
        with pytest.raises(ConnectionClosed):
            send_and_read_all(giant, payload)
        assert giant.close_code == 1009
        assert "error" in told(other, '{"type": "nothing"}')
