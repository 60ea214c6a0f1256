"""Reads invitations. Only operators list them; a person who signs up has the token of one."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from chatapp.accounts.invitations.models import Invitation
from chatapp.operations.database.access import find_row


def valid_invitation(token_hash: str, now: datetime) -> Invitation | None:
    """Return the unexpired invitation with this token, or None."""
    return Invitation.objects.filter(token_hash=token_hash, expires_at__gt=now).first()


def invitation_of(invitation_id: UUID | str) -> Invitation:
    """Return an invitation, for operators. Raise NotFound."""
    return find_row(all_invitations(), invitation_id)


def all_invitations() -> QuerySet[Invitation]:
    """Return all invitations, for operators."""
    return Invitation.objects.all()
