"""Limits wrong passwords, so that a stranger's guesses block the stranger and not the owner.

Guesses from a browser that has signed in to the account, by its cookie or session, count for that browser only.
All others count for their address, for the account as seen from their address, and, at a higher limit, for the account.
"""

from __future__ import annotations

import secrets
from typing import Any

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatapp.accounts.selectors import owners_of

SALT = "palimpsest.known-browser"
YEAR_S = 365 * 24 * 3600
PEOPLE_OF_A_BROWSER = 5
LIMITS = {
    "wrong_password_of_known": "10/300s/key",
    "wrong_password_from": "10/60s/ip,5/300s/key",
    "wrong_password_of_account": "100/3600s/key",
}


def count_guess(request: HttpRequest, login: str) -> ratelimit.RateLimitUsage | None:
    """Count a password as wrong until it proves right; return None if there were too many."""
    login = login.strip().lower()
    browser, people = _known(request)
    if {str(owner) for owner in owners_of(login)} & people:
        return _consume(request, "wrong_password_of_known", f"{browser}:{login}")
    here = _consume(request, "wrong_password_from", f"{request.META.get('REMOTE_ADDR', '')}:{login}")
    if here is None:
        return None
    # Count for the account last, or a single refused address could use up its limit and lock it.
    everywhere = _consume(request, "wrong_password_of_account", login)
    # Return both, because allauth takes both back if the password is right.
    return everywhere and ratelimit.RateLimitUsage([*here.usage, *everywhere.usage])


def remember_browser(request: HttpRequest, response: HttpResponseBase, user_id: Any) -> None:
    """Set a cookie that later proves that this user signed in with the browser."""
    browser, people = _known(request)
    known = [str(user_id), *sorted(people - {str(user_id)})][:PEOPLE_OF_A_BROWSER]
    response.set_cookie(
        settings.DEVICE_COOKIE_NAME,
        signing.dumps([browser, known], salt=SALT),
        max_age=YEAR_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _known(request: HttpRequest) -> tuple[str, set[str]]:
    """Return the browser's id, and the ids of the users who are or were signed in with it."""
    try:
        browser, people = signing.loads(
            request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=SALT, max_age=YEAR_S
        )
    except signing.BadSignature:
        # A browser without a valid cookie is new, and its guesses count for its address.
        browser, people = secrets.token_urlsafe(16), []
    if request.user.is_authenticated:
        people = [*people, str(request.user.pk)]
    return browser, set(people)


def _consume(request: HttpRequest, action: str, key: str) -> ratelimit.RateLimitUsage | None:
    return ratelimit.consume(request, app="chatapp", action=action, config=LIMITS, key=key)
