"""The endpoint /mcp: streamable HTTP, one response for each POST, no sessions."""

from __future__ import annotations

import asyncio
from importlib import import_module

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from chatapp.accounts.callers import BearerAuth, Caller
from chatapp.operations.errors import ServiceError, Unauthorized
from chatapp.operations.http.errors import method_not_allowed, service_error

SCOPES = ("chat", "memory", "read")
EXCHANGE = "chatapp.features.mcp_server.exchange"
"""Imported on first use, because the library takes a second to load and most processes never need it."""


@csrf_exempt  # authenticated by a token, never by a cookie
async def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one MCP message, with the rights of the token in `Authorization: Bearer`."""
    if request.method != "POST":
        return method_not_allowed(request, "POST")
    try:
        caller = await _caller_of(request)
    except ServiceError as error:
        return service_error(request, error)
    assert isinstance(request, ASGIRequest)
    # Import in a thread, so that the event loop is not blocked.
    exchange = await asyncio.to_thread(import_module, EXCHANGE)
    response: HttpResponse = await exchange.answer(request, caller)
    return response


async def _caller_of(request: HttpRequest) -> Caller:
    """Return the caller whose token the request carries. Raise Unauthorized, Forbidden, RateLimited."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized("Send an API token as `Authorization: Bearer <token>`.")
    return await BearerAuth(*SCOPES).authenticate(request, token)
