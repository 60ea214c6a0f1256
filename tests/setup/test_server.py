"""The server from outside, with a tiny application behind it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.servers.service import OwnProcess
from tests.servers.tiny_process import start_tiny
from tests.servers.waiting import PATIENCE_S
from tests.servers.websocket import connect

MEGABYTE = 1_000_000
ALICE = {"Authorization": "Bearer alice"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OwnProcess, int]]:
    process, port = start_tiny(tmp_path_factory.mktemp("tiny") / "log")
    yield process, port
    process.kill()


@pytest.fixture
def url(tiny: tuple[OwnProcess, int]) -> str:
    return f"http://127.0.0.1:{tiny[1]}"


@pytest.fixture
def open_socket(tiny: tuple[OwnProcess, int]) -> Iterator[ClientConnection]:
    with connect(f"ws://127.0.0.1:{tiny[1]}/ws", max_size=None) as client:
        yield client


def test_a_body_up_to_the_limit_arrives_whole(url):
    assert (
        httpx2.post(f"{url}/facts", content=b"x" * MEGABYTE, headers=ALICE, timeout=PATIENCE_S).json()["size"]
        == MEGABYTE
    )


def test_a_body_that_declares_too_large_a_size_is_refused_before_it_is_sent(tiny):
    with socket.create_connection(("127.0.0.1", tiny[1]), timeout=60) as client:
        client.sendall(b"POST /facts HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n")
        answer = client.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(body)["error"]["code"] == "too_large"


def test_a_body_of_unknown_length_is_refused_once_it_is_too_large(url):
    answer = httpx2.post(
        f"{url}/facts", content=(b"x" * 100_000 for _ in range(30)), headers=ALICE, timeout=PATIENCE_S
    )
    assert answer.status_code == 413
    assert "1,000,000 bytes" in answer.json()["error"]["message"]


def test_an_application_error_is_returned_as_json(url):
    answer = httpx2.get(f"{url}/crash", timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_server_error")


def test_clients_cannot_claim_another_address_or_path(url):
    claims = {
        "X-Forwarded-For": "8.8.8.8",
        "X-Forwarded-Proto": "https",
        "Daphne-Root-Path": "/admin",
        "Forwarded": "for=8.8.8.8",
    }
    facts = httpx2.get(f"{url}/facts", headers=claims, timeout=PATIENCE_S).json()
    assert (facts["client"], facts["scheme"], facts["root_path"]) == ("127.0.0.1", "http", "")
    assert not {name.lower() for name in claims} & set(facts["headers"])


def test_the_address_that_trusted_proxies_forward_is_used(tmp_path):
    process, port = start_tiny(tmp_path / "log", "127.0.0.0/8", "10.0.0.0/8")
    try:
        claims = {"X-Forwarded-For": "6.6.6.6, 8.8.8.8, 10.1.2.3", "X-Forwarded-Proto": "https"}
        facts = httpx2.get(f"http://127.0.0.1:{port}/facts", headers=claims, timeout=PATIENCE_S).json()
    finally:
        process.kill()
    assert (facts["client"], facts["scheme"]) == ("8.8.8.8", "https")


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 99_000])
def test_a_socket_returns_frames_of_every_size(open_socket, size):
    text = "ü" * (size // 2) + "x" * (size % 2)
    open_socket.send(text)
    assert open_socket.recv(timeout=60) == text


def send_and_read(client: ClientConnection, message: str | list[str]) -> None:
    """Send and read. Sending raises if the server refuses `message` before all of it is sent, else reading raises."""
    client.send(message)
    client.recv(timeout=60)


def test_a_frame_over_the_limit_closes_the_socket_with_a_reason(open_socket):
    with pytest.raises(ConnectionClosed) as closed:
        send_and_read(open_socket, "x" * 100_001)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
    assert "Send larger messages over HTTP" in closed.value.rcvd.reason


def test_a_message_in_small_frames_is_limited_as_well(open_socket):
    with pytest.raises(ConnectionClosed) as closed:
        send_and_read(open_socket, ["x" * 30_000 for _ in range(4)])
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_the_application_closes_with_its_own_code_and_reason(open_socket):
    open_socket.send("close 1012")
    with pytest.raises(ConnectionClosed) as closed:
        open_socket.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1012, "as you wished")


def test_frames_arrive_in_order_however_fast_they_are_sent(open_socket):
    open_socket.send("flood 2000")
    numbers = [int(str(open_socket.recv(timeout=60)).split()[0]) for _ in range(2_000)]
    assert numbers == list(range(2_000))


HANDSHAKE = b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"


def test_a_client_that_does_not_read_pauses_the_sender_of_a_stream_or_socket(tiny):
    process, port = tiny
    address = ("127.0.0.1", port)
    text = b"flood 100000"
    with (
        socket.create_connection(address, timeout=60) as stream,
        socket.create_connection(address, timeout=60) as client,
    ):
        stream.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        client.sendall(HANDSHAKE)
        assert b"101" in client.recv(1000)
        client.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        chunks = int(process.wait_for_output(r"took (\d+) chunks").group(1))
        frames = int(process.wait_for_output(r"took (\d+) frames").group(1))
    assert chunks * 65_536 < 30 * MEGABYTE
    assert frames * 10_000 < 30 * MEGABYTE
