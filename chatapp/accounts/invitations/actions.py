"""Creates, uses, withdraws and cleans up invitations."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.db import transaction

from chatapp.accounts.actions import check_email
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.models import User
from chatapp.accounts.selectors import hash_token, owners_of
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.database import audit
from chatapp.operations.errors import Conflict, NotFound
from chatapp.operations.models import AuditEvent

VALID_FOR = timedelta(days=7)
EXPIRED_IS_SHOWN_FOR = timedelta(days=30)


def create_invitation(*, email: str, invited_by: User, now: datetime) -> tuple[Invitation, str]:
    """Store an invitation, replacing an earlier one for the address, and return (the invitation, its token).

    Raise InvalidInput for an invalid address, and Conflict if nobody may sign up or the address has an account.
    """
    if current("SIGNUP") == "closed":
        raise Conflict("Nobody can sign up here: SIGNUP is “closed”.", code="signup_closed")
    email = email.strip().lower()
    check_email(email)
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        if owners_of(email):
            raise Conflict("There is an account with this email address already.", details={"field": "email"})
        Invitation.objects.filter(email=email).delete()
        # If somebody else invites the address at the same moment, the later link is valid.
        invitation, _ = Invitation.objects.update_or_create(
            email=email,
            defaults={
                "token_hash": hash_token(token),
                "invited_by": invited_by,
                "created_at": now,
                "expires_at": now + VALID_FOR,
            },
        )
        audit.record(AuditEvent.Kind.INVITED, actor_id=invited_by.pk, invitation=str(invitation.pk))
        record_created_id(invitation.pk)
    return invitation, token


def use_invitation(*, token_hash: str, email: str, now: datetime) -> None:
    """Delete the invitation of the address that signs up, in the caller's transaction.

    Raise NotFound if it was used, withdrawn, expired, or is for another address.
    """
    valid = Invitation.objects.filter(token_hash=token_hash, email=email.lower(), expires_at__gt=now)
    # The number of deleted rows decides: only one of two who sign up with one link at once gets an account.
    used, _ = valid.delete()
    if not used:
        raise NotFound("This invitation was used or withdrawn, or it has expired. Ask for a new one.")


def withdraw_invitation(*, invitation: Invitation, actor: User) -> None:
    """Delete the invitation, which makes its link invalid."""
    with transaction.atomic():
        audit.record(AuditEvent.Kind.INVITATION_WITHDRAWN, actor_id=actor.pk, invitation=str(invitation.pk))
        invitation.delete()


def delete_old_invitations(*, now: datetime) -> None:
    """Delete invitations that expired a while ago."""
    Invitation.objects.filter(expires_at__lt=now - EXPIRED_IS_SHOWN_FOR).delete()
