"""Reads the codes of a user's vectors from the cache, and from rows that changed since."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from chatapp.recall.index_cache import IndexCache
from chatapp.recall.models import SearchCodes
from chatapp.recall.vectors import Codes, join_codes, unpack_codes

CACHE_BYTES = 128_000_000

Row = tuple[int, UUID]
"""Its primary key and its edition."""


@dataclass(frozen=True, slots=True)
class CachedCodes:
    """Codes, the `rows` that they were read from, and how many codes each row has (`sizes`)."""

    rows: tuple[Row, ...]
    sizes: tuple[int, ...]
    codes: Codes

    @property
    def size_bytes(self) -> int:
        return self.codes.size_bytes


cache = IndexCache[CachedCodes](CACHE_BYTES)


def open_codes(owner_id: int, model: str, code_words: int) -> Codes:
    """Return the codes of this model and of this length.

    Codes of another length are from another model that the endpoint served under the same name.
    """
    stored = SearchCodes.objects.filter(owner=owner_id, owner__vector_model=model).order_by("first_ordinal")
    rows = tuple(stored.values_list("pk", "edition"))
    cached = cache.get(owner_id)
    if cached is None or len(cached.codes.words) != code_words:
        cached = CachedCodes((), (), join_codes([], code_words))
    if cached.rows != rows:
        cached = _read_behind(cached, rows, code_words)
        cache.put(owner_id, cached)
    return cached.codes


def _read_behind(cached: CachedCodes, rows: tuple[Row, ...], code_words: int) -> CachedCodes:
    """Return the codes of `rows`. Read only rows from the first changed one on: nearly always just the last."""
    pairs = zip(cached.rows, rows, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    changed = SearchCodes.objects.filter(pk__in=[pk for pk, _ in rows[same:]]).order_by("first_ordinal")
    read = list(changed.values_list("pk", "edition", "ordinals", "codes"))
    parts = [unpack_codes(ordinals, codes) for _, _, ordinals, codes in read]
    fitting = [part if len(part.words) == code_words else join_codes([], code_words) for part in parts]
    before = cached.codes.before(sum(cached.sizes[:same]))
    return CachedCodes(
        # The rows as read: if a row was deleted or changed in between, the next caller notices and reads again.
        rows=(*rows[:same], *((pk, edition) for pk, edition, _, _ in read)),
        sizes=(*cached.sizes[:same], *(len(part.owners) for part in fitting)),
        codes=join_codes([before, *fitting], code_words),
    )
