"""The codes of a user's vectors, read from their rows, or from the shelf where nothing was written to them since."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from chatapp.recall.index_cache import Shelf
from chatapp.recall.models import SearchCodes
from chatapp.recall.vectors import Codes, join_codes, unpack_codes

SHELF_BYTES = 128_000_000

Row = tuple[int, UUID]
"""Its key and its edition."""


@dataclass(frozen=True, slots=True)
class KeptCodes:
    """`rows` are those the codes were read from, `sizes` how many each of them gave."""

    rows: tuple[Row, ...]
    sizes: tuple[int, ...]
    codes: Codes

    @property
    def size_bytes(self) -> int:
        return self.codes.size_bytes


shelf = Shelf[KeptCodes](SHELF_BYTES)


def open_codes(owner_id: int, model: str, code_words: int) -> Codes:
    """Of this model, and of this length: others come from before the endpoint's model changed behind its name."""
    stored = SearchCodes.objects.filter(owner=owner_id, owner__vector_model=model).order_by("first_ordinal")
    rows = tuple(stored.values_list("pk", "edition"))
    kept = shelf.take(owner_id)
    if kept is None or len(kept.codes.words) != code_words:
        kept = KeptCodes((), (), join_codes([], code_words))
    if kept.rows != rows:
        kept = _read_behind(kept, rows, code_words)
        shelf.put(owner_id, kept)
    return kept.codes


def _read_behind(kept: KeptCodes, rows: tuple[Row, ...], code_words: int) -> KeptCodes:
    """What is as it was stays; the rows behind are read. Nearly always that is the last one alone."""
    pairs = zip(kept.rows, rows, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    changed = SearchCodes.objects.filter(pk__in=[pk for pk, _ in rows[same:]]).order_by("first_ordinal")
    read = list(changed.values_list("pk", "edition", "ordinals", "codes"))
    parts = [unpack_codes(ordinals, codes) for _, _, ordinals, codes in read]
    fitting = [part if len(part.words) == code_words else join_codes([], code_words) for part in parts]
    before = kept.codes.before(sum(kept.sizes[:same]))
    return KeptCodes(
        rows=(*rows[:same], *((pk, edition) for pk, edition, _, _ in read)),
        sizes=(*kept.sizes[:same], *(len(part.owners) for part in fitting)),
        codes=join_codes([before, *fitting], code_words),
    )
