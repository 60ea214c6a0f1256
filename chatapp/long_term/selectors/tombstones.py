"""Reads what was forgotten, and what of it could still be said: receipts, proposals, tombstones, sources."""

from __future__ import annotations

from array import array
from datetime import datetime
from uuid import UUID

from django.utils.crypto import salted_hmac

from chatapp.forgetting.models import Tombstone
from chatapp.recall.analysis import vocabulary
from memory.tombstones import Fingerprint, Fingerprinter, Tombstones

SALT = "palimpsest.tombstones"


def fingerprinter_for(user_id: UUID) -> Fingerprinter:
    """With a key that is not in the database: its rows alone do not tell what was forgotten."""
    key = salted_hmac(SALT, str(user_id), algorithm="sha256").digest()
    return Fingerprinter(key, vocabulary)


def tombstones_of(user_id: UUID) -> Tombstones:
    rows = Tombstone.objects.filter(user_id=user_id).values_list("whole", "words")
    found = (Fingerprint(whole, tuple(array("q", bytes(words)))) for whole, words in rows)
    return Tombstones(found, fingerprinter_for(user_id))


def liftable_tombstones(user_id: UUID) -> dict[int, datetime]:
    """What stands for each, and since when it does: those that are not for good."""
    rows = Tombstone.objects.filter(user_id=user_id, for_good=False)
    return dict(rows.values_list("whole", "created_at"))
