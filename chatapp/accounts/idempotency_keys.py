"""Rows that record what a request with an `Idempotency-Key` created, stored in the transaction that creates it.

A crash leaves both or none, and one of two concurrent requests is rolled back. No content or secrets are stored.
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
# The API promises this period to clients, also across restarts.
RETENTION = timedelta(hours=24)


@dataclass(slots=True)
class KeyedRequest:
    """A request with a key. Both are stored as hashes only."""

    user: User
    key_hash: str
    request_hash: str
    is_answered: bool = False
    """If set, nothing more is recorded: a task that the request started, e.g. a run, may outlive it."""

    def end(self) -> None:
        self.is_answered = True


class KeyUsed(Exception):
    """Another request with this key was stored first."""


current_keyed_request: ContextVar[KeyedRequest | None] = ContextVar("current_keyed_request", default=None)


def record_created_id(made_id: UUID) -> None:
    """Store the created id under the key of this request, if it has one. Call this in the creating transaction."""
    asked = current_keyed_request.get()
    if asked is None or asked.is_answered:
        return
    now = clock.now()
    same = IdempotencyKey.objects.filter(user=asked.user, key_hash=asked.key_hash)
    # The clean-up may not have deleted an expired key yet, and the constraint does not know its age.
    same.filter(created_at__lte=now - RETENTION).delete()
    try:
        IdempotencyKey.objects.create(
            user=asked.user,
            key_hash=asked.key_hash,
            request_hash=asked.request_hash,
            made_id=made_id,
            created_at=now,
        )
    except IntegrityError as taken:
        # The error leaves the transaction, so that what this request created is rolled back.
        raise KeyUsed from taken
    # Only after the commit: a transaction that is rolled back and retried has to record it again.
    transaction.on_commit(asked.end)


def create_once(asked: KeyedRequest | None, make: Callable[[], Made], again: Callable[[str], Made]) -> Made:
    """Return what `make` creates, whose action calls `record_created_id`, or `again(id)` of what a request with this
    key created before. `asked` is None if the request has no key. Raise InvalidInput if the key was used otherwise."""
    if asked is None:
        return make()
    made = made_before(asked)
    if made is None:
        before = current_keyed_request.set(asked)
        try:
            return make()
        except KeyUsed:
            made = made_before(asked)
            if made is None:
                raise
        finally:
            asked.end()
            current_keyed_request.reset(before)
    return again(made)


def delete_old_keys(*, now: datetime) -> None:
    IdempotencyKey.objects.filter(created_at__lte=now - RETENTION).delete()


def made_before(asked: KeyedRequest) -> str | None:
    """Return the id of what was created with this key, or None. Raise InvalidInput if another request used the key."""
    row = IdempotencyKey.objects.filter(
        user=asked.user, key_hash=asked.key_hash, created_at__gt=clock.now() - RETENTION
    ).first()
    if row is None:
        return None
    if row.request_hash != asked.request_hash:
        raise InvalidInput(
            "This Idempotency-Key was already used here for another request.", code="idempotency_mismatch"
        )
    return str(row.made_id)
