"""Checks the attributes of daphne, twisted and autobahn that the server uses although they are not public API."""

from __future__ import annotations

import inspect
import tomllib
from importlib.metadata import version
from typing import Any

import pytest
from autobahn.websocket import protocol as autobahn_protocol
from daphne import server as daphne_server
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.abstract import FileDescriptor
from twisted.internet.tcp import Connection
from twisted.web import http as twisted_http

from chatapp.operations.serving import server_channel, server_sockets
from chatapp.operations.serving.server_http import Request
from chatapp.operations.serving.server_limits import Gate
from tests.environment import ROOT


def named(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize("part", ["daphne", "twisted", "autobahn"])
def test_the_parts_of_the_server_are_installed_in_the_pinned_version(part):
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"{part}=={version(part)}" in dependencies


def test_twisted_keeps_pending_output_in_the_two_buffers_that_the_socket_checks():
    """`Socket.send_text` writes directly to the kernel only if both are empty."""
    descriptor = FileDescriptor(reactor=None)
    descriptor.connected = True
    descriptor.startWriting = descriptor.stopWriting = lambda: None
    assert (descriptor.dataBuffer, descriptor._tempDataBuffer) == (b"", [])
    descriptor.write(b"later")
    assert descriptor._tempDataBuffer == [b"later"]
    descriptor.writeSomeData = lambda data: 1
    descriptor.doWrite()
    assert (descriptor.dataBuffer[descriptor.offset :], descriptor._tempDataBuffer) == (b"ater", [])
    assert named(Connection.writeSomeData) == ["self", "data"]
    assert "return main.CONNECTION_LOST" in inspect.getsource(Connection.writeSomeData)


def test_twisted_refuses_malformed_requests_by_the_method_that_the_channel_overrides():
    source = inspect.getsource(twisted_http)
    assert source.count("self._respondToBadRequestAndDisconnect()") >= 5
    assert named(twisted_http.HTTPChannel._respondToBadRequestAndDisconnect) == ["self"]
    assert server_channel.Channel._respondToBadRequestAndDisconnect is not (
        twisted_http.HTTPChannel._respondToBadRequestAndDisconnect
    )


@pytest.mark.parametrize(
    "method",
    [
        "allContentReceived",
        "allHeadersReceived",
        "connectionLost",
        "connectionMade",
        "dataReceived",
        "headerReceived",
        "lineLengthExceeded",
        "lineReceived",
        "loseConnection",
        "requestDone",
    ],
)
def test_the_channel_overrides_methods_that_twisted_has(method):
    own, theirs = getattr(server_channel.Channel, method), getattr(twisted_http.HTTPChannel, method)
    assert len(named(own)) == len(named(theirs))


def test_autobahn_refuses_large_messages_by_the_methods_that_the_socket_uses():
    theirs = autobahn_protocol.WebSocketProtocol
    assert named(theirs._max_message_size_exceeded) == ["self", "msg_size", "max_msg_size", "reason"]
    assert named(server_sockets.Socket._max_message_size_exceeded) == named(theirs._max_message_size_exceeded)
    assert named(theirs._fail_connection)[1:] == ["code", "reason"]
    assert {"code", "reasonUtf8", "isReply"} <= set(named(theirs.sendCloseFrame))
    assert theirs.STATE_OPEN != theirs.STATE_CONNECTING


def test_daphne_has_the_loop_the_checkers_and_the_methods_that_the_server_uses():
    assert daphne_server.twisted_loop is daphne_server.reactor._asyncioEventloop
    server = daphne_server.Server
    assert named(server.handle_reply) == ["self", "protocol", "message"]
    assert named(server.protocol_disconnected) == ["self", "protocol"]
    assert named(server.application_checker) == named(server.timeout_checker) == ["self"]
    assert named(WebRequest.basic_error) == ["self", "status", "status_text", "body"]
    assert named(WebRequest.handle_reply) == named(WebSocketProtocol.handle_reply) == ["self", "message"]
    assert named(HTTPFactory.__init__) == ["self", "server"]
    assert named(twisted_http.Request.gotLength) == ["self", "length"]
    assert named(twisted_http.Request.handleContentChunk) == ["self", "data"]


@pytest.mark.parametrize("state", [server_sockets.Socket.STATE_CLOSING, server_sockets.Socket.STATE_CLOSED])
def test_a_message_to_a_closing_or_closed_socket_is_dropped(state: int) -> None:
    socket = server_sockets.Socket.__new__(server_sockets.Socket)
    socket.state = state
    socket.handle_reply({"type": "websocket.send", "text": "Too late."})


async def test_a_finished_request_stops_the_timer_of_its_gate(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the timer would find a request without a connection and log a traceback."""
    monkeypatch.setattr(WebRequest, "finish", lambda _: None)
    request = Request.__new__(Request)
    request.gate, request.channel = Gate(request._drop), None
    request.gate.close()
    request.finish()
    assert not request.gate.is_closed
