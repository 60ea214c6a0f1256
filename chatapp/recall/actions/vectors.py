"""Writes vectors and their codes to the search index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import transaction

from chatapp.recall.models import SearchCodes, SearchDocument, SearchOwner, SearchVectors
from chatapp.recall.vectors import drop_codes, fits_behind, pack_codes, pack_ordinals, pack_vectors

CODES_AT_ONCE = 1_024
"""Documents whose codes share a row, which is written again with every turn that is added to it."""


@dataclass(frozen=True, slots=True)
class DocumentVectors:
    ordinal: int
    vectors: Sequence[Sequence[float]]


@transaction.atomic
def begin_vectors(*, user_id: UUID, model: str) -> range:
    """Return the ordinals of documents without vectors of this model; vectors of another model are deleted."""
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None:
        return range(0)
    if owner.vector_model != model:
        SearchVectors.objects.filter(owner=owner).delete()
        SearchCodes.objects.filter(owner=owner).delete()
        owner.vector_model, owner.embedded_ordinal = model, 0
        owner.save(update_fields=["vector_model", "embedded_ordinal"])
    return range(owner.embedded_ordinal, owner.next_ordinal)


@transaction.atomic
def store_vectors(
    *, user_id: UUID, model: str, ordinals: range, documents: Sequence[DocumentVectors]
) -> bool:
    """Store the vectors of all documents of these ordinals; return False where another worker was faster."""
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None or owner.vector_model != model or owner.embedded_ordinal != ordinals.start:
        return False
    there = SearchDocument.objects.filter(owner=owner, ordinal__gte=ordinals.start, ordinal__lt=ordinals.stop)
    present = set(there.values_list("ordinal", flat=True))
    left = [document for document in documents if document.ordinal in present]
    rows = [
        SearchVectors(owner=owner, ordinal=one.ordinal, vectors=pack_vectors(one.vectors)) for one in left
    ]
    SearchVectors.objects.bulk_create(rows)
    _append_codes(owner, left)
    owner.embedded_ordinal = ordinals.stop
    owner.save(update_fields=["embedded_ordinal"])
    return True


def _append_codes(owner: SearchOwner, documents: Sequence[DocumentVectors]) -> None:
    flat = [(document.ordinal, vector) for document in documents for vector in document.vectors]
    if not flat:
        return
    ordinals = pack_ordinals([ordinal for ordinal, _ in flat])
    codes = pack_codes([vector for _, vector in flat])
    row = SearchCodes.objects.filter(owner=owner).order_by("-first_ordinal").first()
    is_full = row is not None and flat[-1][0] - row.first_ordinal >= CODES_AT_ONCE
    if row is None or is_full or not fits_behind(row.ordinals, row.codes, ordinals, codes):
        row = SearchCodes(owner=owner, first_ordinal=flat[0][0], ordinals=b"", codes=b"")
    row.last_ordinal = flat[-1][0]
    row.ordinals = bytes(row.ordinals) + ordinals
    row.codes = bytes(row.codes) + codes
    row.edition = uuid4()
    row.save()


def remove_vectors(owner: SearchOwner, ordinals: Sequence[int]) -> None:
    """Delete vectors and codes in the transaction that removes the documents."""
    if not ordinals:
        return
    SearchVectors.objects.filter(owner=owner, ordinal__in=ordinals).delete()
    rows = SearchCodes.objects.filter(
        owner=owner, first_ordinal__lte=max(ordinals), last_ordinal__gte=min(ordinals)
    )
    for row in rows.order_by("first_ordinal"):
        row.ordinals, row.codes = drop_codes(bytes(row.ordinals), bytes(row.codes), ordinals)
        row.edition = uuid4()
        if row.ordinals:
            row.save(update_fields=["ordinals", "codes", "edition"])
        else:
            row.delete()
