"""Authenticates sockets, pages of our own origin by their session and programs by a token, and large requests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import parse_cookie
from django.http.request import validate_host

from chatapp.accounts.rate_limits import check_failed_sign_in
from chatapp.accounts.selectors import find_token, scopes_of, user_of_session
from chatapp.operations.database.threads import in_database

PAGE_SCHEMES = {"ws": "http", "wss": "https"}


def _headers(scope: dict[str, Any]) -> dict[bytes, str]:
    return {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _bearer(scope: dict[str, Any]) -> str | None:
    """Return the token of `Authorization: Bearer`, or None without such a header."""
    scheme, _, token = _headers(scope).get(b"authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def find_user_id(scope: dict[str, Any]) -> UUID | None:
    """Return the user of a request before its body is read: of the token, else of the session, or None. The API checks
    again. Raise RateLimited after too many wrong tokens."""
    token = _bearer(scope)
    if token is not None:
        found = await in_database(find_token)(token)
        if found is None:
            await check_failed_sign_in(scope["client"][0])
        return found.user.pk if found else None
    cookies = parse_cookie(_headers(scope).get(b"cookie", ""))
    session_key = cookies.get(settings.SESSION_COOKIE_NAME)
    user = await in_database(user_of_session)(session_key) if session_key else None
    return user.pk if user else None


def is_own_origin(origin: str, scheme: str, host: str) -> bool:
    """Return whether scheme, host and port match PUBLIC_URL, or this request if PUBLIC_URL is not set."""
    if settings.PUBLIC_URL:
        return origin == settings.PUBLIC_URL
    # An IPv6 address without a port ends with a bracket, and contains colons itself.
    hostname = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    # Equality alone proves nothing: in DNS rebinding, a page sends its own host name, which points at this machine, in
    # both headers.
    return validate_host(hostname, settings.ALLOWED_HOSTS) and origin == f"{PAGE_SCHEMES[scheme]}://{host}"


class OriginCheck:
    """Checks the Origin header with port and scheme, which Channels' validator ignores. Programs send none.

    It stores `send` in the scope, so that the consumer can bypass the middleware in between, which checks its session
    for each word of an answer.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = _headers(scope)
        origin = headers.get(b"origin")
        if origin is not None and not is_own_origin(
            origin, scope.get("scheme", "ws"), headers.get(b"host", "")
        ):
            await send({"type": "websocket.close", "code": 4403})
            return
        await self.inner({**scope, "send_directly": send}, receive, send)


class BearerAuth:
    """Authenticates by `Authorization: Bearer`, which takes precedence over a session. Refuses an invalid token."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        token = _bearer(scope)
        if token is not None:
            found = await in_database(find_token)(token)
            if found is None or "chat" not in scopes_of(found):
                await send({"type": "websocket.close", "code": 4401})
                return
            scope["user"], scope["token_id"] = found.user, found.pk
        elif b"origin" not in _headers(scope):
            scope["user"] = None  # a session cookie without an origin does not come from our page
        await self.inner(scope, receive, send)
