"""Every write of vectors to the search index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from chatapp.models import SearchDocument, SearchOwner, SearchVectors
from chatapp.search_vectors import drop_vectors, pack_ordinals, pack_vectors


@dataclass(frozen=True, slots=True)
class DocumentVectors:
    ordinal: int
    vectors: Sequence[Sequence[float]]


@transaction.atomic
def begin_vectors(*, user_id: UUID, model: str) -> range:
    """The ordinals of the documents that lack vectors of this model; those of another are dropped."""
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None:
        return range(0)
    if owner.vector_model != model:
        SearchVectors.objects.filter(owner=owner).delete()
        owner.vector_model, owner.embedded_ordinal = model, 0
        owner.save(update_fields=["vector_model", "embedded_ordinal"])
    return range(owner.embedded_ordinal, owner.next_ordinal)


@transaction.atomic
def store_vectors(
    *, user_id: UUID, model: str, ordinals: range, documents: Sequence[DocumentVectors]
) -> bool:
    """Of all documents of these ordinals; False where another worker was faster."""
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None or owner.vector_model != model or owner.embedded_ordinal != ordinals.start:
        return False
    there = SearchDocument.objects.filter(owner=owner, ordinal__gte=ordinals.start, ordinal__lt=ordinals.stop)
    present = set(there.values_list("ordinal", flat=True))
    flat = [(one.ordinal, vector) for one in documents if one.ordinal in present for vector in one.vectors]
    if flat:
        SearchVectors.objects.create(
            owner=owner,
            first_ordinal=ordinals.start,
            last_ordinal=ordinals.stop - 1,
            ordinals=pack_ordinals([ordinal for ordinal, _ in flat]),
            vectors=pack_vectors([vector for _, vector in flat]),
        )
    owner.embedded_ordinal = ordinals.stop
    owner.save(update_fields=["embedded_ordinal"])
    return True


def remove_vectors(owner: SearchOwner, ordinals: Sequence[int]) -> None:
    """Called in the transaction that removes the documents."""
    if not ordinals:
        return
    rows = SearchVectors.objects.filter(
        owner=owner, first_ordinal__lte=max(ordinals), last_ordinal__gte=min(ordinals)
    )
    for row in rows.order_by("first_ordinal"):
        row.ordinals, row.vectors = drop_vectors(bytes(row.ordinals), bytes(row.vectors), ordinals)
        if row.ordinals:
            row.save(update_fields=["ordinals", "vectors"])
        else:
            row.delete()
