"""Reads tombstones, which keep forgotten sentences from being learned again."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from uuid import UUID

from django.db import connection
from django.utils.crypto import salted_hmac

from chatapp.forgetting.models import WORD_BYTES, Tombstone
from chatapp.operations.caching.editions import edition_of_user
from chatapp.operations.database.statements import execute, table_name
from chatapp.recall.analysis import vocabulary
from chatapp.recall.index_cache import IndexCache
from memory.long_term.tombstones import Fingerprint, Fingerprinter, Tombstones

SALT = "palimpsest.tombstones"
CACHE_BYTES = 20_000_000
BYTES_EACH = 1_000
"""The approximate memory of one tombstone."""
ASKED_AT_ONCE = 100


def fingerprinter_for(user_id: UUID) -> Fingerprinter:
    """Return a fingerprinter. Its key is not in the database, so that the rows do not reveal what was forgotten."""
    key = salted_hmac(SALT, str(user_id), algorithm="sha256").digest()
    return Fingerprinter(key, vocabulary)


@dataclass(frozen=True, slots=True)
class _Read:
    """The tombstones of one user at one edition."""

    edition: str
    tombstones: Tombstones
    count: int

    @property
    def size_bytes(self) -> int:
        return BYTES_EACH * (1 + self.count)


_cache = IndexCache[_Read](CACHE_BYTES)


def tombstones_of(user_id: UUID, more: Sequence[Tombstone] = ()) -> Tombstones:
    """Return the user's tombstones, and `more` that are not stored yet. Stored ones are cached by edition."""
    if more:
        rows = Tombstone.objects.filter(user_id=user_id)
        return _known(
            user_id, chain(rows.values_list("whole", "words"), ((one.whole, one.words) for one in more))
        )
    edition = edition_of_user(user_id)
    known = _cache.get(user_id.int)
    if known is None or known.edition != edition:
        stored = list(Tombstone.objects.filter(user_id=user_id).values_list("whole", "words"))
        known = _Read(edition, _known(user_id, stored), len(stored))
        _cache.put(user_id.int, known)
    return known.tombstones


def tombstones_about(user_id: UUID, sentences: Iterable[str]) -> Tombstones:
    """Return tombstones of the user, at least those that cover one of these sentences. If all sentences are short, read
    only the tombstones that may cover them."""
    fingerprinter = fingerprinter_for(user_id)
    asked = [one for sentence in sentences if (one := fingerprinter.fingerprint(sentence))]
    # A tombstone that covers a short sentence has the same words, and so the same first word, which is indexed.
    if not all(one.is_short for one in asked):
        return tombstones_of(user_id)
    found: list[tuple[int, bytes]] = []
    for first in range(0, len(asked), ASKED_AT_ONCE):
        some = asked[first : first + ASKED_AT_ONCE]
        first_words = [array("q", one.words[:1]).tobytes() for one in some]
        statement = _about_statement(len(some), connection.vendor)
        found += execute(statement, user_id, *(one.whole for one in some), user_id, *first_words)
    return _known(user_id, found)


@lru_cache
def _about_statement(count: int, vendor: str) -> str:
    """Return the statement for `count` sentences, with the expression of the index `tombstone_by_first_word`."""
    read = f"SELECT whole, words FROM {table_name(Tombstone)} WHERE user_id = %s AND"
    some = ", ".join(["%s"] * count)
    first_word = f"{'SUBSTRING' if vendor == 'postgresql' else 'SUBSTR'}(words, 1, {WORD_BYTES})"
    # Two statements that each use an index: with an OR of the two conditions, the database would use none.
    return f"{read} whole IN ({some}) UNION ALL {read} {first_word} IN ({some})"


def _known(user_id: UUID, rows: Iterable[tuple[int, bytes | memoryview]]) -> Tombstones:
    found = (Fingerprint(whole, tuple(array("q", bytes(words)))) for whole, words in rows)
    return Tombstones(found, fingerprinter_for(user_id))


def liftable_tombstones(user_id: UUID) -> dict[int, datetime]:
    """Return when each tombstone that is not permanent was stored, by the fingerprint of its whole sentence."""
    rows = Tombstone.objects.filter(user_id=user_id, for_good=False)
    return dict(rows.values_list("whole", "created_at"))
