"""Finds the user of a request by its headers, before a large body is read. The API checks again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import parse_cookie

from chatapp.accounts.rate_limits import check_failed_sign_in
from chatapp.accounts.selectors import find_token, user_of_session
from chatapp.operations.database.threads import in_database


async def find_user_id(scope: dict[str, Any]) -> UUID | None:
    """Return the user of the token, else of the session, or None. Raise RateLimited after too many wrong tokens."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, token = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found = await in_database(find_token)(token.strip())
        if found is None:
            await check_failed_sign_in(scope["client"][0])
        return found.user.pk if found else None
    session_key = parse_cookie(headers.get(b"cookie", "")).get(settings.SESSION_COOKIE_NAME)
    user = await in_database(user_of_session)(session_key) if session_key else None
    return user.pk if user else None
