"""Removes a deleted conversation from the search index, in transactions of a few milliseconds.

First its documents stop being scored (`hide_documents`, a few rows). Then each posting that names one is written once,
and the documents are deleted. Every piece may be repeated. Documents that are not sealed yet are never sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
from django.db import transaction
from django.db.models import F, QuerySet

from chatapp.operations.work_budget import Budget, delete_some
from chatapp.recall.actions.bulk_writes import update_postings
from chatapp.recall.actions.vectors import remove_vectors
from chatapp.recall.analysis import TERM
from chatapp.recall.index_format import BLOCK, COLUMNS, drop_postings
from chatapp.recall.models import (
    SearchBlock,
    SearchCodes,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SearchVectors,
)

TERMS_AT_ONCE = 50
DOCUMENTS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class GoneDocuments:
    """A conversation's documents in its user's index: offsets by block, and all their terms in order."""

    owner_id: int
    offsets: Mapping[int, npt.NDArray[np.int64]]
    terms: npt.NDArray[np.int64]


def read_gone_documents(conversation_id: UUID, *, with_terms: bool) -> GoneDocuments | None:
    """Return the conversation's documents; None where no user's index has any."""
    rows = SearchDocument.objects.filter(
        conversation=conversation_id, kind=SearchDocument.Kind.MESSAGE, owner__user__isnull=False
    )
    found = rows.values_list("owner_id", "ordinal", *(("terms",) if with_terms else ()))
    ordinals: list[int] = []
    terms: list[bytes] = []
    owners: set[int] = set()
    for owner_id, ordinal, *rest in found.iterator():
        owners.add(owner_id)
        ordinals.append(ordinal)
        terms += map(bytes, rest)
    if not ordinals:
        return None
    columns = np.array(ordinals, dtype=np.int64)
    offsets = {
        int(number): columns[columns // BLOCK == number] % BLOCK for number in np.unique(columns // BLOCK)
    }
    return GoneDocuments(owners.pop(), offsets, np.unique(np.frombuffer(b"".join(terms), TERM)))


def hide_documents(conversation_id: UUID) -> None:
    """Clear the columns of sealed documents: one short transaction for each block, and most users have one."""
    gone = read_gone_documents(conversation_id, with_terms=False)
    if gone is None:
        return
    for number, offsets in gone.offsets.items():
        _hide_in_block(gone.owner_id, number, offsets)


@transaction.atomic
def _hide_in_block(owner_id: int, number: int, offsets: npt.NDArray[np.int64]) -> None:
    owner = _lock(owner_id)
    block = SearchBlock.objects.filter(owner=owner_id, number=number).first()
    if owner is None or block is None:
        return
    columns = np.frombuffer(block.columns, COLUMNS).copy()
    sealed = offsets[offsets < len(columns)]
    for name in ("minute", "length", "live"):
        columns[name][sealed] = 0
    block.columns = columns.tobytes()
    block.save(update_fields=["columns"])
    _set_edition(owner)


def _lock(owner_id: int) -> SearchOwner | None:
    return SearchOwner.objects.select_for_update().filter(pk=owner_id).first()


def _set_edition(owner: SearchOwner) -> None:
    owner.edition = uuid4()
    owner.save(update_fields=["edition"])


@transaction.atomic
def clean_postings(gone: GoneDocuments, first_term: int, budget: Budget) -> int:
    """Drop the documents from the postings of `gone.terms` from index `first_term` on; return the index to go on at."""
    spending, at = budget.start(), first_term
    owner = _lock(gone.owner_id)
    while owner is not None and at < len(gone.terms):
        some = gone.terms[at : at + min(TERMS_AT_ONCE, max(1, spending.rows_left))].tolist()
        at += len(some)
        rows = SearchPosting.objects.filter(owner=gone.owner_id, term__in=some, block__in=list(gone.offsets))
        kept: list[tuple[bytes, int]] = []
        empty: list[int] = []
        for pk, block, entries in rows.values_list("pk", "block", "entries"):
            left = drop_postings(entries, gone.offsets[block])
            spending.spend(1, len(entries))
            if not left:
                empty.append(pk)
            elif len(left) < len(entries):
                kept.append((left, pk))
        update_postings(kept)
        SearchPosting.objects.filter(pk__in=empty).delete()
        if spending.is_spent:
            break
    if owner is None:
        return len(gone.terms)
    _set_edition(owner)
    return at


@transaction.atomic
def delete_documents(conversation_id: UUID, budget: Budget) -> bool:
    """Delete documents and count them off the index; return whether none of the conversation is left."""
    spending = budget.start()
    rows = SearchDocument.objects.filter(conversation=conversation_id, kind=SearchDocument.Kind.MESSAGE)
    while True:
        at_once = max(1, min(DOCUMENTS_AT_ONCE, spending.rows_left))
        some = list(rows.order_by("pk").values_list("pk", "owner_id", "ordinal", "length")[:at_once])
        if not some:
            return True
        for owner_id in {owner_id for _, owner_id, _, _ in some}:
            owner = _lock(owner_id)
            ordinals = sorted(ordinal for _, its, ordinal, _ in some if its == owner_id)
            if owner is not None:
                remove_vectors(owner, ordinals)
                _set_edition(owner)
            SearchOwner.objects.filter(pk=owner_id).update(
                document_count=F("document_count") - len(ordinals),
                total_length=F("total_length") - sum(length for _, its, _, length in some if its == owner_id),
            )
        SearchDocument.objects.filter(pk__in=[pk for pk, *_ in some]).delete()
        spending.spend(len(some))
        if spending.is_spent:
            return False


# --- Indexes without an owner ---------------------------------------------------------------------------


@transaction.atomic
def abandon_index(**whose: UUID | bool) -> None:
    """Detach indexes from their user or scope: they are not found any more, and a worker deletes them in pieces."""
    SearchOwner.objects.filter(**whose).update(user=None, scope=None)


def _abandoned() -> QuerySet[SearchOwner]:
    return SearchOwner.objects.filter(user=None, scope=None)


@transaction.atomic
def delete_abandoned(budget: Budget) -> bool:
    """Delete rows of abandoned indexes; return whether none is left."""
    spending = budget.start()
    for owner_id in list(_abandoned().values_list("pk", flat=True)):
        for model in (SearchPosting, SearchBlock, SearchVectors, SearchCodes, SearchDocument):
            if not delete_some(model.objects.filter(owner=owner_id), spending):
                return False
        SearchOwner.objects.filter(pk=owner_id).delete()
    return True
