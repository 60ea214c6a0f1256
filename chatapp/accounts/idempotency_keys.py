"""What requests with an `Idempotency-Key` made: a row under the key says which thing, in the transaction that makes it.

A crash leaves both or none, and of two requests at once one is rolled back. No words or secrets are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction

from chatapp.accounts.models import IdempotencyKey, User
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput

Made = TypeVar("Made")
# Promised to clients, across restarts, too.
KEPT = timedelta(hours=24)


@dataclass(slots=True)
class Asked:
    """A request with a key, which is kept as hashes only."""

    user: User
    key_hash: str
    request_hash: str
    is_answered: bool = False
    """Then nothing more is recorded: a task that the request began, such as a run, may outlive it."""

    def end(self) -> None:
        self.is_answered = True


class KeyUsed(Exception):
    """Another request with this key made its thing first."""


asked_once: ContextVar[Asked | None] = ContextVar("asked_once", default=None)


def record_made(made_id: UUID) -> None:
    """Store under the key of this request, if it has one, what it made; in the transaction that makes it."""
    asked = asked_once.get()
    if asked is None or asked.is_answered:
        return
    now = clock.now()
    same = IdempotencyKey.objects.filter(user=asked.user, key_hash=asked.key_hash)
    # The clean-up may not have come yet, and the constraint knows no age.
    same.filter(created_at__lte=now - KEPT).delete()
    try:
        IdempotencyKey.objects.create(
            user=asked.user,
            key_hash=asked.key_hash,
            request_hash=asked.request_hash,
            made_id=made_id,
            created_at=now,
        )
    except IntegrityError as taken:
        # It leaves the transaction, so that what this request made is rolled back.
        raise KeyUsed from taken
    # Not before: a transaction that is rolled back and tried again has to record it again.
    transaction.on_commit(asked.end)


def made_once(asked: Asked | None, make: Callable[[], Made], again: Callable[[str], Made]) -> Made:
    """Return what `make` makes, whose action calls `record_made`, or `again` of the id of what the request with this
    key made before. None: the request has no key. Raise InvalidInput for another request."""
    if asked is None:
        return make()
    made = made_before(asked)
    if made is None:
        before = asked_once.set(asked)
        try:
            return make()
        except KeyUsed:
            made = made_before(asked)
            if made is None:
                raise
        finally:
            asked.end()
            asked_once.reset(before)
    return again(made)


def delete_old_keys(*, now: datetime) -> None:
    IdempotencyKey.objects.filter(created_at__lte=now - KEPT).delete()


def made_before(asked: Asked) -> str | None:
    """Return the id of what was made with this key; None if nothing was. Raise InvalidInput for another request."""
    row = IdempotencyKey.objects.filter(
        user=asked.user, key_hash=asked.key_hash, created_at__gt=clock.now() - KEPT
    ).first()
    if row is None:
        return None
    if row.request_hash != asked.request_hash:
        raise InvalidInput(
            "This Idempotency-Key was already used here for another request.", code="idempotency_mismatch"
        )
    return str(row.made_id)
