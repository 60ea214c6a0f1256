"""Raises tombstones: what was forgotten is known by its fingerprints from now on, and never learned again."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from uuid import UUID

from chatapp.models import Tombstone
from chatapp.selectors.forgetting import fingerprinter_for

MAX_SENTENCES = 20_000
BATCH = 500


def raise_tombstones(user_id: UUID, texts: Iterable[str], now: datetime) -> int:
    """Called in the transaction that forgets them; how many sentences are barred."""
    found = list(islice(fingerprinter_for(user_id).fingerprints(texts), MAX_SENTENCES))
    rows = [
        Tombstone(
            user_id=user_id,
            whole=fingerprint.whole,
            words=array("q", fingerprint.words).tobytes(),
            created_at=now,
        )
        for fingerprint in found
    ]
    Tombstone.objects.bulk_create(rows, ignore_conflicts=True, batch_size=BATCH)
    return len(rows)
