"""Reads invitations. Only operators list them; who signs up has the token of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from chatapp.accounts.invitations.models import Invitation
from chatapp.operations.access import find_row


def valid_invitation(token_hash: str, now: datetime) -> Invitation | None:
    """Return the invitation with this token that has not expired, if there is one."""
    return Invitation.objects.filter(token_hash=token_hash, expires_at__gt=now).first()


def invitation_of(invitation_id: UUID | str) -> Invitation:
    """Return an invitation, for operators. Raises NotFound."""
    return find_row(Invitation.objects.all(), invitation_id)


def invitation_page(*, cursor: tuple[datetime, UUID] | None, limit: int) -> tuple[Sequence[Invitation], bool]:
    """Return (one page of the invitations, newest first; whether there are more), for operators."""
    rows = Invitation.objects.all()
    if cursor is not None:
        moment, last_id = cursor
        rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, id__lt=last_id))
    found = list(rows.order_by("-created_at", "-id")[: limit + 1])
    return found[:limit], len(found) > limit
