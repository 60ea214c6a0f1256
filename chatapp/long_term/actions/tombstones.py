"""Stores tombstones of forgotten sentences, so that they are not learned again, and deletes those of sentences that the
user asks to remember after all."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chatapp.conversations import message_values
from chatapp.forgetting.models import ForgetReceipt, Tombstone
from chatapp.long_term.selectors.pauses import sent_messages
from chatapp.long_term.selectors.tombstones import fingerprinter_for, liftable_tombstones, tombstones_of
from chatapp.operations.database.statements import insert_rows
from memory.long_term.memory_requests import read_remember_requests

MAX_SENTENCES = 20_000


def make_tombstones(user_id: UUID, texts: Iterable[str], now: datetime) -> list[Tombstone]:
    """Return unsaved tombstones of the sentences in these texts."""
    return [
        Tombstone(
            user_id=user_id,
            whole=fingerprint.whole,
            words=array("q", fingerprint.words).tobytes(),
            created_at=now,
        )
        for fingerprint in islice(fingerprinter_for(user_id).fingerprints(texts), MAX_SENTENCES)
    ]


def store_tombstones(
    rows: Sequence[Tombstone], *, for_good: bool = False, receipt: ForgetReceipt | None = None
) -> int:
    """Store tombstones; return how many. Call it once, in the transaction that forgets their sentences: tombstones are
    always locked in the order of `whole`."""
    for row in rows:
        row.for_good, row.receipt = for_good, receipt
    changed = ("created_at", "receipt_id", *(("for_good",) if for_good else ()))
    new = ", ".join(f"{column} = excluded.{column}" for column in changed)
    in_order = sorted(rows, key=lambda row: row.whole)
    insert_rows(in_order, on_conflict=f"(user_id, whole) DO UPDATE SET {new}")
    return len(rows)


def lift_tombstones(*, receipt: ForgetReceipt) -> int:
    """Delete the tombstones of one forgetting, so that its sentences can be learned again. Return how many."""
    with transaction.atomic():
        return _delete(Tombstone.objects.filter(user=receipt.user_id, receipt=receipt))


def lift_requested(user_id: UUID, message_ids: Iterable[UUID]) -> int:
    """Delete the tombstones of sentences that one of these messages asks to remember; return how many. Repeating a
    sentence does not count, nor do imported messages and those said while memory was paused."""
    asked = [
        (row.created_at, sentence)
        for row in sent_messages(user_id, message_ids)
        for sentence in read_remember_requests(message_values.text_of(row.parts))
    ]
    liftable = liftable_tombstones(user_id) if asked else {}
    if not liftable:
        return 0
    tombstones, lifted = tombstones_of(user_id), set[int]()
    for said_at, sentence in asked:
        wholes = tombstones.covering(sentence)
        lifted |= {whole for whole in wholes if whole in liftable and liftable[whole] < said_at}
    _delete(Tombstone.objects.filter(user=user_id, whole__in=lifted))
    return len(lifted)


@transaction.atomic
def _delete(rows: QuerySet[Tombstone]) -> int:
    """Delete tombstones, locked in the order in which they are stored. Return how many."""
    held = list(rows.select_for_update().order_by("whole").values_list("pk", flat=True))
    return Tombstone.objects.filter(pk__in=held).delete()[0]
