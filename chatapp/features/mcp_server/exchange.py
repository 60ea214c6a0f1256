"""Passes one MCP request through the library's ASGI application."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, JsonResponse
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INVALID_REQUEST

from chatapp.accounts.callers import Caller
from chatapp.features.mcp_server.server import CALLER, build_server

MAX_BYTES = 4 * 2**20

_server = build_server()


async def answer(request: ASGIRequest, caller: Caller) -> HttpResponse:
    """Return the response to a POST. Requests are independent: no session is kept."""
    return await _Exchange(request, caller).answer()


def _refusal(status: int, message: str) -> JsonResponse:
    error = {"code": INVALID_REQUEST, "message": message}
    return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=status)


class _Exchange:
    """One request and its response, passed through the library's ASGI application."""

    def __init__(self, request: ASGIRequest, caller: Caller) -> None:
        self.scope: dict[str, Any] = {**request.scope, CALLER: caller}
        self.body = request.body
        self.is_read = False
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.content = bytearray()

    async def answer(self) -> HttpResponse:
        # Create one for each request, because the library's manager cannot be reused after its run.
        manager = StreamableHTTPSessionManager(
            _server,
            json_response=True,
            stateless=True,
            max_request_body_size=min(MAX_BYTES, settings.MAX_REQUEST_BYTES),
        )
        async with manager.run():
            await manager.handle_request(self.scope, self._receive, self._send)
        if self.status >= 400 and not self._is_json():  # plain text by the library, without a content type
            return _refusal(self.status, self.content.decode())
        response = HttpResponse(bytes(self.content), status=self.status)
        for name, value in self.headers:
            # Django sets the length itself.
            if name.lower() != b"content-length":
                response[name.decode("latin-1")] = value.decode("latin-1")
        return response

    def _is_json(self) -> bool:
        return any(name.lower() == b"content-type" and b"json" in value for name, value in self.headers)

    async def _receive(self) -> dict[str, Any]:
        if self.is_read:
            await asyncio.Event().wait()  # there is no further message: the exchange ends first
        self.is_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
        else:
            self.content += message.get("body", b"")
