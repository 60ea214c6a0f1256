"""Writes vectors and their codes to the search index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import transaction

from chatapp.operations.database.work_budget import PIECE, Budget, delete_some
from chatapp.recall.models import SearchCodes, SearchDocument, SearchOwner, SearchVectors
from chatapp.recall.vectors import drop_codes, have_same_length, pack_codes, pack_ordinals, pack_vectors

CODES_AT_ONCE = 1_024
"""Documents whose codes share a row. The row is rewritten with every turn that is added to it."""
VECTORS_DELETED_AT_ONCE = 50
CODES_DELETED_AT_ONCE = 2
"""A row may exceed a megabyte."""


@dataclass(frozen=True, slots=True)
class DocumentVectors:
    ordinal: int
    vectors: Sequence[Sequence[float]]


@transaction.atomic
def drop_other_vectors(*, user_id: UUID, model: str, budget: Budget = PIECE) -> bool:
    """Delete vectors of other models, as many as fit a short transaction; return whether all are deleted.

    Searches ignore them from the first call on.
    """
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None or owner.vector_model == model:
        return True
    if owner.vector_model:
        owner.vector_model = ""
        owner.save(update_fields=["vector_model"])
    spending = budget.start()
    for rows, at_once in (
        (SearchVectors.objects.filter(owner=owner), VECTORS_DELETED_AT_ONCE),
        (SearchCodes.objects.filter(owner=owner), CODES_DELETED_AT_ONCE),
    ):
        if not delete_some(rows, spending, at_once):
            return False
    owner.vector_model, owner.embedded_ordinal = model, 0
    owner.save(update_fields=["vector_model", "embedded_ordinal"])
    return True


@transaction.atomic
def begin_vectors(*, user_id: UUID, model: str) -> range:
    """Return the ordinals of documents without vectors of this model; empty while vectors of another model remain."""
    if not drop_other_vectors(user_id=user_id, model=model):
        return range(0)
    owner = SearchOwner.objects.filter(user_id=user_id).first()
    return range(owner.embedded_ordinal, owner.next_ordinal) if owner is not None else range(0)


@transaction.atomic
def store_vectors(
    *, user_id: UUID, model: str, ordinals: range, documents: Sequence[DocumentVectors]
) -> bool:
    """Store the vectors of all documents of these ordinals; return False if another worker was faster."""
    owner = SearchOwner.objects.select_for_update().filter(user_id=user_id).first()
    if owner is None or owner.vector_model != model or owner.embedded_ordinal != ordinals.start:
        return False
    # Skip documents that were removed while the endpoint worked, because nothing would delete their vectors.
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
    # Codes are ordered by document: a removal finds their row by its first and last ordinal.
    in_order = sorted(documents, key=lambda document: document.ordinal)
    flat = [(document.ordinal, vector) for document in in_order for vector in document.vectors]
    if not flat:
        return
    ordinals = pack_ordinals([ordinal for ordinal, _ in flat])
    codes = pack_codes([vector for _, vector in flat])
    row = SearchCodes.objects.filter(owner=owner).order_by("-first_ordinal").first()
    # The endpoint may serve another model under the same name now, with vectors of another length.
    is_full = row is not None and flat[-1][0] - row.first_ordinal >= CODES_AT_ONCE
    if row is None or is_full or not have_same_length(row.ordinals, row.codes, ordinals, codes):
        row = SearchCodes(owner=owner, first_ordinal=flat[0][0], ordinals=b"", codes=b"")
    row.last_ordinal = flat[-1][0]
    row.ordinals = bytes(row.ordinals) + ordinals
    row.codes = bytes(row.codes) + codes
    row.edition = uuid4()
    row.save()


def remove_vectors(owner: SearchOwner, ordinals: Sequence[int]) -> None:
    """Delete the vectors and codes of documents, in the transaction that removes the documents."""
    ordinals = [ordinal for ordinal in ordinals if ordinal < owner.embedded_ordinal]
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
