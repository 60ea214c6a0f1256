"""Writes the audit log: sign-ins, failed sign-ins, and changes of rights, tokens, sessions and settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Model
from django.utils import translation

from chatapp.operations import clock
from chatapp.operations.models import AuditEvent
from chatapp.operations.telemetry import client_address

RETENTION = timedelta(days=400)


def record(
    kind: AuditEvent.Kind, *, user_id: UUID | None = None, actor_id: UUID | None = None, **detail: Any
) -> None:
    """Store an event of an account, in the caller's transaction.

    `actor_id` is the user who did it, by default the user of the account. `detail` must not contain text of the user,
    because it would outlive the account.
    """
    AuditEvent.objects.create(
        at=clock.now(),
        kind=kind,
        user_id=user_id,
        actor_id=actor_id or user_id,
        address=client_address.get()[:45],
        detail=detail,
    )


def record_change(
    row: Model, done: str, *, fields: Sequence[str], actor_id: UUID | None = None, **detail: Any
) -> None:
    """Record an operator's change of a row. Store the row's name only if the row does not belong to a user."""
    user_id = row.pk if isinstance(row, AbstractBaseUser) else getattr(row, "user_id", None)
    with translation.override(None):  # the log is in English, whatever the actor's language
        # A row with an email address, e.g. an invitation, contains it in its name, so leave the name out.
        name = "" if user_id or hasattr(row, "email") else str(row)[:200]
    record(
        AuditEvent.Kind.CHANGED_IN_ADMIN,
        user_id=user_id,
        actor_id=actor_id,
        done=done,
        row=f"{row._meta.model_name} {row.pk}",
        name=name,
        fields=list(fields),
        **detail,
    )


def delete_old_events(*, now: datetime) -> int:
    """Delete events older than RETENTION and return their number."""
    old = AuditEvent.objects.filter(at__lt=now - RETENTION)
    # Bypass the query set, which refuses to delete. No other table references these rows.
    return int(old._raw_delete(old.db))
