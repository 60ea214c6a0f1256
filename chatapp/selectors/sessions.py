"""Whether a browser is still signed in."""

from __future__ import annotations

from uuid import UUID

from django.contrib.sessions.models import Session
from django.utils import timezone

from chatapp.models import User


def is_still_signed_in(user_id: UUID, session_key: str | None) -> bool:
    """`session_key` None: came with a token; only the account counts."""
    if not User.objects.filter(pk=user_id, is_active=True).exists():
        return False
    if session_key is None:
        return True
    return Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now()).exists()
