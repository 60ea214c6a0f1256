"""Asks for the password again before actions that would let the thief of a session keep access."""

from __future__ import annotations

import time

from allauth.account import app_settings
from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from asgiref.sync import sync_to_async
from django.contrib.auth.hashers import check_password

from chatapp.accounts.callers import ApiRequest
from chatapp.accounts.rate_limits import check_password_guess
from chatapp.operations.database import audit
from chatapp.operations.errors import Forbidden
from chatapp.operations.models import AuditEvent
from memory.bounds import MAX_PASSWORD_CHARS


async def confirm_identity(request: ApiRequest, password: str | None) -> None:
    """Accept a page whose user signed in or entered the password in the last minutes, or sends it now.

    Raise Forbidden, also for a token, and RateLimited.
    """
    if not await sync_to_async(_signed_in_recently)(request):
        await confirm_password(request, password)


async def confirm_password(request: ApiRequest, password: str | None) -> None:
    """Accept a page whose user sends the password now, or has none and signed in at an issuer in the last minutes.

    Raise Forbidden, also for a token, and RateLimited.
    """
    caller = request.auth
    if caller.token_id is not None:
        raise Forbidden("A token cannot do this. Sign in on the page.", code="session_needed")
    if not caller.user.has_usable_password():
        if not await sync_to_async(_signed_in_recently)(request):
            raise Forbidden("Sign out and in again for this.", code="sign_in_needed")
        return
    if not password:
        raise Forbidden("Enter your password for this.", code="password_needed")
    # Count the guess before checking it, or guesses sent at once would all be checked before the first one counts.
    await check_password_guess(caller.user.pk)
    if not await sync_to_async(_is_password)(request, password):
        raise Forbidden("This is not your password.", code="wrong_password")


def _signed_in_recently(request: ApiRequest) -> bool:
    # A token has no session, where allauth keeps its records.
    if request.auth.session_key is None:
        return False
    records = get_authentication_records(request, request.auth.user)
    return any(time.time() - record["at"] < app_settings.REAUTHENTICATION_TIMEOUT for record in records)


def _is_password(request: ApiRequest, password: str) -> bool:
    user = request.auth.user
    # `user.check_password` would update an outdated hash, which ends all sessions of the user, including this one.
    if len(password) <= MAX_PASSWORD_CHARS and check_password(password, user.password):
        # allauth's own pages do not ask again in the next minutes.
        record_authentication(request, user, method="password", reauthenticated=True)
        return True
    audit.record(AuditEvent.Kind.SIGN_IN_FAILED, user_id=user.pk, entered="password")
    return False
