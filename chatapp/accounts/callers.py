"""Authenticates API requests: programs by a Bearer token, pages by their session and CSRF token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from ninja.security import APIKeyCookie, HttpBearer

from chatapp.accounts.actions import record_token_use
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_failed_sign_in
from chatapp.accounts.selectors import SCOPES, find_token, scopes_of
from chatapp.operations.errors import Forbidden, Unauthorized


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user. `token_id` is set for a program, `session_key` for a page."""

    user: User
    scopes: frozenset[str]
    token_id: UUID | None = None
    session_key: str | None = None

    @property
    def is_operator(self) -> bool:
        """Return whether the caller has operator rights. An operator's token needs the scope, too."""
        return "admin" in self.scopes


class ApiRequest(HttpRequest):
    """A request that passed `allow(…)`. `request.user` is the same user as `request.auth.user`."""

    auth: Caller


def allow(*scopes: str) -> list[Any]:
    """Return the value of `auth=` that allows pages and tokens with at least one of the scopes."""
    return [BearerAuth(*scopes), SessionAuth(*scopes)]


def client_address(request: HttpRequest) -> str:
    """Return the client's address, which the server has already put in place of a trusted proxy's."""
    return str(request.META.get("REMOTE_ADDR", ""))


class BearerAuth(HttpBearer):
    """Refuses an invalid token, rather than falling back to a session."""

    openapi_description = f"An API token. Scopes: {', '.join(SCOPES)}."

    def __init__(self, *scopes: str) -> None:
        self.scopes = frozenset(scopes)
        super().__init__()

    async def authenticate(self, request: HttpRequest, token: str) -> Caller:
        caller = await sync_to_async(_caller_with_token)(token.strip())
        if caller is None:
            # Count only failures, so that others at the address do not slow down a program with a valid token.
            await check_failed_sign_in(client_address(request))
            raise Unauthorized("This token is not valid.")
        _check_scopes(self.scopes, caller)
        request.user = caller.user
        return caller


class CsrfCheck(CsrfViewMiddleware):
    """Django's check of the CSRF token, without its error page."""

    @classmethod
    def run(cls, request: HttpRequest) -> None:
        """Raise Forbidden if the token is missing or wrong."""
        check = cls(lambda _: HttpResponse())
        check.process_request(request)
        # Django skips the check if this says that its middleware has run.
        request.csrf_processing_done = False  # type: ignore[attr-defined]
        # Pass another view: ninja's are exempt, because requests with a token need no such check.
        check.process_view(request, HttpResponse, (), {})

    def _reject(self, request: HttpRequest, reason: str) -> NoReturn:
        raise Forbidden(f"{reason.rstrip('.')}. Reload the page.", code="csrf_failed")


class SessionAuth(APIKeyCookie):
    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, *scopes: str) -> None:
        self.scopes = frozenset(scopes)
        super().__init__()

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        """Return the session's caller; None if nobody is signed in. Raise Forbidden."""
        user = request.user
        if not isinstance(user, User) or not user.is_active:
            return None
        CsrfCheck.run(request)
        scopes = frozenset(SCOPES) if user.is_superuser else frozenset(SCOPES) - {"admin"}
        caller = Caller(user, scopes, session_key=request.session.session_key)
        _check_scopes(self.scopes, caller)
        request.user = user
        return caller

    async def __call__(self, request: HttpRequest) -> Caller | None:
        """Authenticate in a thread: the database holds the session, and the body of an upload its form."""
        # Requests without a session need neither a thread nor a query.
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return None
        return await sync_to_async(self.authenticate)(request, None)


def _caller_with_token(raw: str) -> Caller | None:
    token = find_token(raw)
    if token is None:
        return None
    record_token_use(token=token)
    return Caller(token.user, scopes_of(token), token_id=token.pk)


def _check_scopes(wanted: frozenset[str], caller: Caller) -> None:
    if not wanted & caller.scopes:
        names = " or ".join(sorted(wanted))
        raise Forbidden(f"This needs a token with the scope {names}.", code="insufficient_scope")
