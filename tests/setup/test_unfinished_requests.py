"""Requests that are malformed, too large or never complete are refused, without affecting other clients."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Iterator

import httpx2
import pytest

from chatapp.operations.serving.server_limits import network_of
from tests.reliability.browsers import BrowserSession
from tests.servers.people import ALICE
from tests.servers.tiny_process import start_tiny
from tests.servers.waiting import PATIENCE_S, wait_for
from tests.servers.websocket import connect

BOUND = 1_000
BODIES = 3
CONNECTIONS = 8
HASTY_S = 0.8
"""Short, but longer than a busy machine delays a client between its connection and its first bytes."""
TOKEN = {"alice": b"Authorization: Bearer alice\r\n", "bob": b"Authorization: Bearer bob\r\n"}
EXPECT = b"Expect: 100-continue\r\n"
LARGE_FILE = {"file": ("notes.txt", b"A line of text.\n" * 10_000, "text/plain")}
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of a server with the real timeouts and small budgets."""
    process, port = start_tiny(
        tmp_path_factory.mktemp("patient") / "log",
        anonymous_request_bytes=BOUND,
        anonymous_address_bytes=BODIES * (BOUND + 16 * 1024),
        connections_per_address=CONNECTIONS,
    )
    yield port
    process.kill()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    process, port = start_tiny(
        tmp_path_factory.mktemp("hasty") / "log",
        idle_s=HASTY_S,
        headers_s=HASTY_S,
        body_s=HASTY_S,
        body_bytes_per_s=10_000,
    )
    yield port
    process.kill()


@pytest.fixture
def sockets() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def opened(sockets: contextlib.ExitStack, port: int, data: bytes = b"") -> socket.socket:
    client = sockets.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    client.sendall(data)
    return client


def head(*headers: bytes, path: bytes = b"/facts") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + b"".join(headers) + b"\r\n"


def length(size: int) -> bytes:
    return b"Content-Length: %d\r\n" % size


def read_to_end(client: socket.socket) -> bytes:
    with client.makefile("rb") as file:
        return file.read()


def read_error(client: socket.socket) -> tuple[int, str]:
    """Read until the server closes. Return the status and the error code of the only response."""
    answer = read_to_end(client)
    assert answer.count(b"HTTP/1.1 ") == 1
    start, _, body = answer.partition(b"\r\n\r\n")
    return int(start.split()[1]), json.loads(body)["error"]["code"]


def read_status(client: socket.socket) -> int:
    with client.makefile("rb") as file:
        return int(file.readline().split()[1])


def hold_body(sockets: contextlib.ExitStack, port: int, size: int, *headers: bytes) -> socket.socket:
    """Return the connection of a request whose body the server waits for."""
    client = opened(sockets, port, head(length(size), EXPECT, *headers))
    assert client.recv(len(CONTINUE), socket.MSG_WAITALL) == CONTINUE
    return client


def trickle(pieces: dict[socket.socket, bytes]) -> None:
    """Send each connection its piece repeatedly until the server answers it."""
    for _ in range(1_000):
        for client, piece in pieces.items():
            client.sendall(piece)
        answered = select.select(pieces, (), (), 0.02)[0]
        pieces = {client: piece for client, piece in pieces.items() if client not in answered}
        if not pieces:
            break


# --- deadlines -------------------------------------------------------------------------------------


UNFINISHED = {
    "a line": b"GET /fa",
    "headers": b"GET /facts HTTP/1.1\r\nHost: x\r\n",
    "an empty line": b"\r\n",
    "the handshake of a socket": b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    "a short body": head(length(10)) + b"5\r\nab",
    "a long body": head(length(60_000)) + b"5\r\nab",
    "a body in chunks": head(b"Transfer-Encoding: chunked\r\n") + b"5\r\nab",
}


def test_an_unfinished_request_is_answered_and_its_connection_closed(hasty, sockets):
    waiting = {what: opened(sockets, hasty, sent) for what, sent in UNFINISHED.items()}
    answers = {what: read_error(client) for what, client in waiting.items()}
    assert answers == dict.fromkeys(UNFINISHED, (408, "request_timeout"))


TRICKLING = {
    "headers": (b"GET /facts HTTP/1.1\r\n", b"X: y\r\n"),
    "a body": (head(length(900_000), TOKEN["alice"]), b"x"),
    "chunks": (head(b"Transfer-Encoding: chunked\r\n", TOKEN["alice"]), b"1\r\nx\r\n"),
}


def test_trickling_data_does_not_extend_the_deadline(hasty, sockets):
    clients = {what: opened(sockets, hasty, start) for what, (start, _) in TRICKLING.items()}
    trickle({clients[what]: piece for what, (_, piece) in TRICKLING.items()})
    answers = {what: read_error(client) for what, client in clients.items()}
    assert answers == dict.fromkeys(TRICKLING, (408, "request_timeout"))


def test_a_body_faster_than_the_minimum_rate_may_exceed_the_deadline(hasty, sockets):
    """Each piece earns more time than passes until the next one. Together they take longer than the deadline."""
    client = opened(sockets, hasty, head(length(100_000), TOKEN["alice"]))
    client.settimeout(HASTY_S / 16)
    for _ in range(20):
        client.sendall(b"x" * 5_000)
        with contextlib.suppress(TimeoutError):
            client.recv(1, socket.MSG_PEEK)
    client.settimeout(20)
    assert read_status(client) == 200


def test_an_idle_connection_is_closed(hasty, sockets):
    silent, answered = opened(sockets, hasty), opened(sockets, hasty, head(length(0)))
    assert read_to_end(silent) == b""
    assert read_to_end(answered).startswith(b"HTTP/1.1 200 ")


# --- framing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        length(5) + b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\n" + length(5),
        length(5) + b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding:\r\n",
        b"Transfer-Encoding : chunked\r\n",
        length(5) + length(6),
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: " + b"9" * 5_000 + b"\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"Host: x\r\n",
        b"HOST:evil.example\r\n",
        b"Content-Type: text/plain\r\ncontent-type:\tapplication/json\r\n",
        b"Authorization: Bearer x\r\nAuthorization: Bearer x\r\n",
        b"Origin: http://x\r\nOrigin: http://y\r\n",
        b"no header\r\n",
        b"X: " + b"x" * 20_000 + b"\r\n",
        b"X: y\r\n" * 600,
    ],
)
@pytest.mark.parametrize("after", [b"", b"X: y\r\n"])
def test_an_ambiguous_request_is_refused_and_data_after_it_is_not_read(patient, sockets, headers, after):
    body = b"0\r\n\r\nGET /facts HTTP/1.1\r\nHost: x\r\n\r\n"
    client = opened(sockets, patient, head(headers, after) + body)
    assert read_error(client) == (400, "malformed")


@pytest.mark.parametrize("after", [b"", length(0), length(5), EXPECT + length(5), length(0) + UPGRADE])
def test_an_http_1_1_request_must_have_a_host_header(patient, sockets, after):
    request = b"POST /facts HTTP/1.1\r\nX: y\r\n" + after + b"\r\n"
    assert read_error(opened(sockets, patient, request)) == (400, "malformed")
    earlier = request.replace(b"HTTP/1.1", b"HTTP/1.0") + b"12345"
    if UPGRADE not in after:
        assert read_status(opened(sockets, patient, earlier)) == 200


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        *(
            (host, True)
            for host in (b"x", b"x:80", b"a_b.example:8000", b"127.0.0.1:1", b"[::1]", b"[::1]:80")
        ),
        *(
            (host, False)
            for host in (b"x,y", b"x, y", b"x\r\n y", b"x y", b"", b"x:y", b"x/y", b"u@x", b"[::1", b"x?")
        ),
    ],
)
def test_a_host_header_must_be_one_name_with_an_optional_port(patient, sockets, host, is_one):
    request = b"POST /facts HTTP/1.1\r\nHost: " + host + b"\r\n" + length(0) + b"\r\n"
    client = opened(sockets, patient, request)
    if is_one:
        assert read_status(client) == 200
    else:
        assert read_error(client) == (400, "malformed")


def test_list_headers_and_cookies_may_have_several_lines(patient, sockets):
    lines = b"Accept: a/b\r\nAccept: c/d\r\nCookie: a=1\r\nCookie: b=2\r\nX-Own: 1\r\nX-Own: 2\r\n"
    assert read_status(opened(sockets, patient, head(length(0), lines))) == 200


def test_chunked_bodies_before_http_1_1_are_refused(patient, sockets):
    """A proxy that does not support chunks would read the body as the next request."""
    request = head(b"Transfer-Encoding: chunked\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert read_error(opened(sockets, patient, request + b"0\r\n\r\n")) == (400, "malformed")


@pytest.mark.parametrize(
    "line",
    [
        b"OPTIONS * HTTP/1.1",
        b"CONNECT 127.0.0.1:80 HTTP/1.1",
        b"GET facts HTTP/1.1",
        b"GET ftp://x/facts HTTP/1.1",
    ],
)
def test_a_request_target_that_is_not_a_path_is_refused(patient, sockets, line):
    assert read_error(opened(sockets, patient, line + b"\r\nHost: x\r\n\r\n")) == (400, "malformed")


@pytest.mark.parametrize("line", [b"nonsense", b"GET /facts", b"GET /facts HTTP/9", b"x" * 20_000])
def test_a_malformed_request_line_is_refused(patient, sockets, line):
    assert read_error(opened(sockets, patient, line + b"\r\n\r\n")) == (400, "malformed")


def test_a_malformed_chunk_is_refused(patient, sockets):
    client = opened(sockets, patient, head(b"Transfer-Encoding: chunked\r\n") + b"zz\r\n")
    assert read_error(client) == (400, "malformed")


# --- size ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [b"", b"Authorization: Bearer mallory\r\n"])
@pytest.mark.parametrize("expect", [b"", EXPECT])
def test_a_large_anonymous_body_is_refused_before_it_is_read(patient, sockets, token, expect):
    client = opened(sockets, patient, head(length(BOUND + 1), token, expect))
    assert read_error(client) == (401, "unauthorized")


def test_an_anonymous_body_of_unknown_length_is_refused_once_it_is_large(patient, sockets):
    client = opened(sockets, patient, head(b"Transfer-Encoding: chunked\r\n") + b"%x\r\n" % (BOUND + 1))
    client.sendall(b"x" * (BOUND + 1))
    assert read_error(client) == (401, "unauthorized")


def test_a_user_can_send_large_bodies_of_known_and_unknown_length(patient):
    user = {"Authorization": "Bearer alice"}
    known = httpx2.post(
        f"http://127.0.0.1:{patient}/facts", content=b"x" * 900_000, headers=user, timeout=PATIENCE_S
    )
    pieces = (b"x" * 100_000 for _ in range(9))
    unknown = httpx2.post(
        f"http://127.0.0.1:{patient}/facts", content=pieces, headers=user, timeout=PATIENCE_S
    )
    assert known.json()["size"] == unknown.json()["size"] == 900_000


def test_a_body_that_is_complete_before_its_user_is_known_is_accepted(patient, sockets):
    chunk = b"%x\r\n" % (2 * BOUND) + b"x" * 2 * BOUND + b"\r\n0\r\n\r\n"
    encoding = b"Transfer-Encoding: chunked\r\nConnection: close\r\n"
    answer = read_to_end(opened(sockets, patient, head(TOKEN["alice"], encoding) + chunk))
    assert b'"size": 2000' in answer


def test_a_user_that_expects_100_continue_gets_one(patient, sockets):
    client = hold_body(sockets, patient, 2 * BOUND, TOKEN["alice"], b"Connection: close\r\n")
    client.sendall(b"x" * 2 * BOUND)
    answer = read_to_end(client)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"size": 2000' in answer


@pytest.mark.parametrize(("path", "bound"), [(b"/small?x=y", 1_000), (b"/facts", 1_000_000)])
def test_a_body_over_the_limit_of_its_route_is_refused_before_it_is_read(patient, sockets, path, bound):
    client = opened(sockets, patient, head(length(bound + 1), TOKEN["alice"], EXPECT, path=path))
    assert read_error(client) == (413, "too_large")


# --- budgets ---------------------------------------------------------------------------------------


def test_unfinished_bodies_are_limited_per_address_and_do_not_block_users(patient, sockets):
    held = [hold_body(sockets, patient, BOUND) for _ in range(BODIES)]
    assert read_error(opened(sockets, patient, head(length(BOUND)))) == (429, "rate_limited")
    assert read_status(opened(sockets, patient, head(length(0), TOKEN["alice"]))) == 200
    held[0].sendall(b"x" * BOUND)
    assert read_status(held[0]) == 200
    assert read_status(opened(sockets, patient, head(length(BOUND)) + b"x" * BOUND)) == 200


def test_the_unfinished_bodies_of_one_user_do_not_block_another(patient, sockets):
    for _ in range(2):
        hold_body(sockets, patient, 1_000_000, TOKEN["alice"])
    refused = opened(sockets, patient, head(length(1_000_000), TOKEN["alice"]))
    assert read_error(refused) == (429, "rate_limited")
    hold_body(sockets, patient, 1_000_000, TOKEN["bob"])


def test_the_bodies_of_all_users_together_are_limited(tmp_path, sockets):
    process, port = start_tiny(tmp_path / "log", all_users_bytes=1_500_000, all_strangers_bytes=40_000)
    try:
        hers = hold_body(sockets, port, 1_000_000, TOKEN["alice"])
        refused = opened(sockets, port, head(length(1_000_000), TOKEN["bob"]))
        assert read_error(refused) == (429, "rate_limited")
        hold_body(sockets, port, 10_000)
        stranger = opened(sockets, port, head(length(10_000)))
        assert read_error(stranger) == (429, "rate_limited"), "strangers have a share of their own"
        hers.sendall(b"x" * 1_000_000)
        assert read_status(hers) == 200
        hold_body(sockets, port, 1_000_000, TOKEN["bob"])
    finally:
        process.kill()


def test_connections_are_limited_per_address_until_their_user_is_known(patient, sockets):
    def is_full() -> bool:
        return read_status(sockets.enter_context(socket.create_connection(("127.0.0.1", patient)))) == 429

    for _ in range(2 * CONNECTIONS):
        sockets.enter_context(connect(f"ws://127.0.0.1:{patient}/ws"))
    held = [hold_body(sockets, patient, 1, TOKEN["bob"]) for _ in range(BODIES)]
    silent = [opened(sockets, patient) for _ in range(CONNECTIONS - BODIES)]
    assert is_full()
    for client in (*held, *silent):
        client.close()
    url = f"http://127.0.0.1:{patient}/facts"
    wait_for(lambda: httpx2.get(url, timeout=PATIENCE_S).status_code == 200, what="a free connection")


def test_behind_a_trusted_proxy_each_client_has_its_own_budget(tmp_path, sockets):
    process, port = start_tiny(
        tmp_path / "log", "127.0.0.1", anonymous_address_bytes=17 * 1024, connections_per_address=1
    )
    try:
        hold_body(sockets, port, BOUND, b"X-Forwarded-For: 8.8.8.8\r\n")
        refused = opened(sockets, port, head(length(BOUND), b"X-Forwarded-For: 8.8.8.8\r\n"))
        assert read_error(refused) == (429, "rate_limited")
        hold_body(sockets, port, BOUND, b"X-Forwarded-For: 9.9.9.9\r\n")
    finally:
        process.kill()


def test_untrusted_clients_cannot_claim_other_addresses(patient, sockets):
    claims = [b"X-Forwarded-For: 8.8.8.%d\r\n" % number for number in range(BODIES + 1)]
    for claim in claims[1:]:
        hold_body(sockets, patient, BOUND, claim)
    assert read_error(opened(sockets, patient, head(length(BOUND), claims[0]))) == (429, "rate_limited")


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ],
)
def test_ipv6_clients_are_counted_by_their_64_bit_network(address, client):
    assert network_of(address) == client


# --- the service -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(start_shared):
    return start_shared(MAX_UPLOAD_BYTES="1000000")


def test_large_anonymous_bodies_do_not_block_users(service, sockets):
    for token in (b"", b"", b"Authorization: Bearer wrong\r\n", b"Cookie: sessionid=wrong\r\n"):
        stranger = opened(
            sockets, service.port, head(length(64 * 2**20), token, path=b"/api/v1/conversations")
        )
        assert read_error(stranger) == (401, "unauthorized")
    with service.client_of(ALICE) as alice:
        conversation = alice.post("/api/v1/conversations", json={}).json()["id"]
        stored = alice.post("/api/v1/files", files=LARGE_FILE)
        message = {"content": "Hello.", "stream": True}
        with alice.stream("POST", f"/api/v1/conversations/{conversation}/messages", json=message) as sent:
            assert sent.status_code == 200
    assert stored.status_code == 201, stored.text


def test_a_page_can_send_large_bodies_only_while_it_is_signed_in(service):
    page = BrowserSession(service, ALICE)
    title = "x" * 100_000
    cookie = {"Cookie": page.cookie}
    assert page.call("POST", "/api/v1/conversations", title=title).json()["error"]["code"] == "invalid"
    page.sign_out()
    refused = service.client().post("/api/v1/conversations", json={"title": title}, headers=cookie)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_file_over_the_upload_limit_is_refused_before_it_is_read(service, sockets):
    token = b"Authorization: Bearer " + service.tokens[ALICE].encode() + b"\r\n"
    upload = opened(sockets, service.port, head(length(1_100_000), token, EXPECT, path=b"/api/v1/files"))
    assert read_error(upload) == (413, "too_large")


def test_anonymous_bodies_without_their_last_byte_do_not_block_users(start_service, sockets):
    service = start_service(MAX_REQUEST_BYTES="500000")
    for _ in range(4):
        stranger = opened(sockets, service.port, head(length(500_000), path=b"/api/v1/conversations"))
        with contextlib.suppress(ConnectionError):
            stranger.sendall(b"x" * 499_999)
    answer = service.client_of(ALICE).post("/api/v1/conversations", json={"title": "x" * 100})
    assert answer.status_code == 201, answer.text
    refused = service.client().post("/api/v1/conversations", content=b"x" * 500_001)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
