"""Reads what was forgotten, and what of it could still be said: receipts, proposals, tombstones, sources."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from uuid import UUID

from django.db import connection
from django.db.models import Count, Max
from django.utils.crypto import salted_hmac

from chatapp.forgetting.models import Tombstone
from chatapp.recall.analysis import vocabulary
from chatapp.recall.index_cache import IndexCache
from memory.tombstones import Fingerprint, Fingerprinter, Tombstones

SALT = "palimpsest.tombstones"
CACHE_BYTES = 20_000_000
BYTES_EACH = 1_000
"""What one takes in memory, about."""


def fingerprinter_for(user_id: UUID) -> Fingerprinter:
    """With a key that is not in the database: its rows alone do not tell what was forgotten."""
    key = salted_hmac(SALT, str(user_id), algorithm="sha256").digest()
    return Fingerprinter(key, vocabulary)


@dataclass(frozen=True, slots=True)
class _Read:
    """Those of one user, as they were when there were so many and the newest had this key."""

    edition: tuple[int, int | None]
    tombstones: Tombstones

    @property
    def size_bytes(self) -> int:
        return BYTES_EACH * (1 + self.edition[0])


_cache = IndexCache[_Read](CACHE_BYTES)


def tombstones_of(user_id: UUID, more: Sequence[Tombstone] = ()) -> Tombstones:
    """Return what is stored, and `more` that is not stored yet. What is stored is read once for each change of it."""
    rows = Tombstone.objects.filter(user_id=user_id)
    if more:
        return _known(
            user_id, chain(rows.values_list("whole", "words"), ((one.whole, one.words) for one in more))
        )
    counted = rows.aggregate(count=Count("pk"), newest=Max("pk"))
    edition = (counted["count"], counted["newest"])
    known = _cache.get(user_id.int)
    if known is None or known.edition != edition:
        known = _Read(edition, _known(user_id, rows.values_list("whole", "words")))
        if not connection.in_atomic_block:  # keys are given again after a rollback
            _cache.put(user_id.int, known)
    return known.tombstones


def _known(user_id: UUID, rows: Iterable[tuple[int, bytes | memoryview]]) -> Tombstones:
    found = (Fingerprint(whole, tuple(array("q", bytes(words)))) for whole, words in rows)
    return Tombstones(found, fingerprinter_for(user_id))


def liftable_tombstones(user_id: UUID) -> dict[int, datetime]:
    """What stands for each, and since when it does: those that are not for good."""
    rows = Tombstone.objects.filter(user_id=user_id, for_good=False)
    return dict(rows.values_list("whole", "created_at"))
