"""The address /mcp: streamable HTTP, one answer for each POST, no sessions to keep."""

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
"""Imported when it is used: the library takes a second, and most processes are never asked."""


@csrf_exempt  # a token is asked for, never a cookie
async def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one message of MCP, with the rights of the token in `Authorization: Bearer`."""
    if request.method != "POST":
        return method_not_allowed(request, "POST")
    try:
        caller = await _caller_of(request)
    except ServiceError as error:
        return service_error(request, error)
    assert isinstance(request, ASGIRequest)
    # In a thread, so that the event loop does not wait for the import.
    exchange = await asyncio.to_thread(import_module, EXCHANGE)
    response: HttpResponse = await exchange.answer(request, caller)
    return response


async def _caller_of(request: HttpRequest) -> Caller:
    """Return the caller whose token the request has. Raise Unauthorized, Forbidden, RateLimited."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized("Send an API token as `Authorization: Bearer <token>`.")
    return await BearerAuth(*SCOPES).authenticate(request, token)
