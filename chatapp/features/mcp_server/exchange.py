"""Passes one MCP request through the library's ASGI application."""

from __future__ import annotations

from typing import Any

import httpx2
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
    # Create one for each request, because the library's manager cannot be reused after its run.
    manager = StreamableHTTPSessionManager(
        _server,
        json_response=True,
        stateless=True,
        max_request_body_size=min(MAX_BYTES, settings.MAX_REQUEST_BYTES),
    )

    async def application(_: Any, receive: Any, send: Any) -> None:
        # The scope, with its headers, is that of the request to this service.
        await manager.handle_request({**request.scope, CALLER: caller}, receive, send)

    body_only = httpx2.Request("POST", "http://mcp", content=request.body)
    async with manager.run():
        found = await httpx2.ASGITransport(application).handle_async_request(body_only)
    content = await found.aread()
    if found.status_code >= 400 and "json" not in found.headers.get("content-type", ""):
        # The library answers in plain text, without a content type.
        return _refusal(found.status_code, content.decode())
    response = HttpResponse(content, status=found.status_code)
    for name, value in found.headers.items():
        # Django sets the length itself.
        if name != "content-length":
            response[name] = value
    return response


def _refusal(status: int, message: str) -> JsonResponse:
    error = {"code": INVALID_REQUEST, "message": message}
    return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=status)
