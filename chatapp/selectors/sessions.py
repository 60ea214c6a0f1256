"""Whether who is connected may still be."""

from __future__ import annotations

from uuid import UUID

from django.contrib.sessions.models import Session
from django.utils import timezone

from chatapp.models import ApiToken, User


def is_still_signed_in(user_id: UUID, session_key: str | None, token_id: UUID | None = None) -> bool:
    """A program came with a token, a page with a session; who came with neither counts as its account."""
    if not User.objects.filter(pk=user_id, is_active=True).exists():
        return False
    if token_id is not None:
        return ApiToken.objects.filter(pk=token_id, user_id=user_id).exists()
    if session_key is None:
        return True
    return Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now()).exists()
