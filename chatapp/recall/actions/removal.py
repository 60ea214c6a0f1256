"""Removes documents from the search index: single messages and entries at once, deleted conversations and bulk
forgetting in transactions of a few milliseconds.

For a deleted conversation, `hide_documents` first excludes its documents from scoring. Then each affected posting is
rewritten once, and the documents are deleted. Every step is idempotent. Documents that are not sealed yet stay
unsealed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.arrays import np, npt
from chatapp.operations.database.statements import delete_rows, update_row
from chatapp.operations.database.work_budget import AT_ONCE, Budget, delete_some
from chatapp.recall.actions.bulk_writes import update_postings
from chatapp.recall.actions.vectors import CODES_DELETED_AT_ONCE, remove_vectors
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

TERMS_PER_QUERY = 900
TERMS_AT_ONCE = 50
DOCUMENTS_AT_ONCE = 100
_ABANDONED = Q(owner__user=None, owner__scope=None)


# --- Messages and entries ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    pk: int
    owner_id: int
    ordinal: int
    length: int
    terms: bytes | memoryview


@transaction.atomic(savepoint=False)  # an error rolls back an outer transaction, too
def remove_sources(source_ids: Collection[UUID], **which: Any) -> None:
    """Remove messages and entries from all indexes, or only the documents `which` fits. Leave those of abandoned
    indexes, which are deleted as a whole."""
    documents = SearchDocument.objects.filter(source_id__in=source_ids, **which).exclude(_ABANDONED)
    for owner, rows in _by_owner(documents):
        _remove_from(owner, rows)


@transaction.atomic(savepoint=False)  # an error rolls back an outer transaction, too
def hide_sources(source_ids: Collection[UUID]) -> None:
    """Exclude messages and entries from all searches. Faster than `remove_sources`."""
    documents = SearchDocument.objects.filter(source_id__in=source_ids)
    for owner, rows in _by_owner(documents):
        _remove_from(owner, [row for row in rows if row.ordinal >= owner.sealed_ordinal])
        ordinals = np.array([row.ordinal for row in rows if row.ordinal < owner.sealed_ordinal], np.int64)
        for number in sorted({*(ordinals // BLOCK).tolist()}):
            _clear_columns(owner.pk, number, ordinals[ordinals // BLOCK == number] % BLOCK)


def _owners_of(documents: QuerySet[SearchDocument]) -> Q:
    return Q(pk__in=documents.order_by().values("owner"))


def _by_owner(
    documents: QuerySet[SearchDocument],
) -> Iterator[tuple[SearchOwner, list[RemovedDocument]]]:
    """Lock the indexes, then read the documents, and yield each index that contains any with its documents.

    Before the lock, another transaction could still change the terms of a document, or remove it.
    """
    locked = lock_owners(_owners_of(documents))
    columns = ("pk", "owner_id", "ordinal", "length", "terms")
    read = documents.order_by("ordinal").values_list(*columns) if locked else ()
    rows = [RemovedDocument(*row) for row in read]
    for owner in locked:
        if gone := [row for row in rows if row.owner_id == owner.pk]:
            yield owner, gone


def lock_owners(which: Q) -> list[SearchOwner]:
    """Lock and return indexes in the order used everywhere: those of users before those of scopes."""
    owners = SearchOwner.objects.filter(which).select_for_update()
    return list(owners.order_by(F("scope").asc(nulls_first=True), "pk"))


def _remove_from(owner: SearchOwner, gone: Sequence[RemovedDocument]) -> None:
    sealed = [row for row in gone if row.ordinal < owner.sealed_ordinal]
    for number in sorted({row.ordinal // BLOCK for row in sealed}):
        _clean_block(owner, number, [row for row in sealed if row.ordinal // BLOCK == number])
    remove_vectors(owner, [row.ordinal for row in gone])
    delete_rows(SearchDocument, [row.pk for row in gone])
    owner.document_count -= len(gone)
    owner.total_length -= sum(row.length for row in gone)
    owner.edition = uuid4()
    update_row(owner, "document_count", "total_length", "edition")


def _clean_block(owner: SearchOwner, number: int, rows: Sequence[RemovedDocument]) -> None:
    gone = np.array([row.ordinal % BLOCK for row in rows], dtype=np.int64)
    _clear_columns(owner.pk, number, gone)
    # Not np.unique, because its first call imports numpy.ma while the lock is held.
    terms = sorted({*np.frombuffer(b"".join(bytes(row.terms) for row in rows), TERM).tolist()})
    for start in range(0, len(terms), TERMS_PER_QUERY):
        some = terms[start : start + TERMS_PER_QUERY]
        postings = SearchPosting.objects.filter(owner=owner, block=number, term__in=some)
        left = [(drop_postings(entries, gone), pk) for pk, entries in postings.values_list("pk", "entries")]
        update_postings([row for row in left if row[0]])
        SearchPosting.objects.filter(pk__in=[pk for entries, pk in left if not entries]).delete()


def _clear_columns(owner_id: int, number: int, offsets: npt.NDArray[np.int64]) -> None:
    """Clear the columns of documents in a block, so that they are not scored."""
    block = SearchBlock.objects.filter(owner=owner_id, number=number).first()
    if block is None:
        return
    columns = np.frombuffer(block.columns, COLUMNS).copy()
    sealed = offsets[offsets < len(columns)]
    for name in ("minute", "length", "live"):
        columns[name][sealed] = 0
    block.columns = columns.tobytes()
    block.save(update_fields=["columns"])


# --- Many documents, in batches -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemovedDocuments:
    """Documents to remove from one index: their offsets by block, and all their terms, sorted."""

    owner_id: int
    offsets: Mapping[int, npt.NDArray[np.int64]]
    terms: npt.NDArray[np.int64]


def documents_in(conversation_id: UUID) -> QuerySet[SearchDocument]:
    """Return the documents of the conversation's messages."""
    return SearchDocument.objects.filter(conversation=conversation_id, kind=SearchDocument.Kind.MESSAGE)


def documents_made_of(source_ids: Collection[UUID]) -> QuerySet[SearchDocument]:
    """Return the documents of messages and entries, in all indexes."""
    return SearchDocument.objects.filter(source_id__in=source_ids)


def read_removed_documents(
    documents: QuerySet[SearchDocument], *, with_terms: bool
) -> list[RemovedDocuments]:
    """Return the documents grouped by index. Skip abandoned indexes, which are deleted as a whole."""
    rows = documents.exclude(_ABANDONED)
    found = rows.values_list("owner_id", "ordinal", *(("terms",) if with_terms else ()))
    ordinals: dict[int, list[int]] = {}
    terms: dict[int, list[bytes]] = {}
    for owner_id, ordinal, *rest in found.iterator():
        ordinals.setdefault(owner_id, []).append(ordinal)
        terms.setdefault(owner_id, []).extend(map(bytes, rest))
    return [_gone_documents(owner_id, ordinals[owner_id], terms[owner_id]) for owner_id in sorted(ordinals)]


def _gone_documents(owner_id: int, ordinals: Sequence[int], terms: Sequence[bytes]) -> RemovedDocuments:
    columns = np.array(ordinals, dtype=np.int64)
    offsets = {
        int(number): columns[columns // BLOCK == number] % BLOCK for number in np.unique(columns // BLOCK)
    }
    return RemovedDocuments(owner_id, offsets, np.unique(np.frombuffer(b"".join(terms), TERM)))


def hide_documents(conversation_id: UUID) -> None:
    """Clear the columns of the sealed documents, in one short transaction per block. Most users have one block."""
    for gone in read_removed_documents(documents_in(conversation_id), with_terms=False):
        for number, offsets in gone.offsets.items():
            _hide_in_block(gone.owner_id, number, offsets)


@transaction.atomic
def _hide_in_block(owner_id: int, number: int, offsets: npt.NDArray[np.int64]) -> None:
    owner = _lock(owner_id)
    if owner is not None:
        _clear_columns(owner_id, number, offsets)
        _set_edition(owner)


def _lock(owner_id: int) -> SearchOwner | None:
    return SearchOwner.objects.select_for_update().filter(pk=owner_id).first()


def _set_edition(owner: SearchOwner) -> None:
    owner.edition = uuid4()
    owner.save(update_fields=["edition"])


@transaction.atomic
def clean_postings(gone: RemovedDocuments, first_term: int, budget: Budget) -> int:
    """Drop the documents from the postings of `gone.terms[first_term:]` within the budget; return the next index."""
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
def delete_documents(rows: QuerySet[SearchDocument], budget: Budget) -> bool:
    """Delete documents within the budget and update the counters of their indexes; return whether all are deleted."""
    spending = budget.start()
    owners = {owner.pk: owner for owner in lock_owners(_owners_of(rows))}
    while True:
        at_once = max(1, min(DOCUMENTS_AT_ONCE, spending.rows_left))
        some = list(rows.order_by("pk").values_list("pk", "owner_id", "ordinal", "length")[:at_once])
        if not some:
            return True
        for owner_id in {owner_id for _, owner_id, _, _ in some}:
            ordinals = sorted(ordinal for _, its, ordinal, _ in some if its == owner_id)
            remove_vectors(owners[owner_id], ordinals)
            _set_edition(owners[owner_id])
            SearchOwner.objects.filter(pk=owner_id).update(
                document_count=F("document_count") - len(ordinals),
                total_length=F("total_length") - sum(length for _, its, _, length in some if its == owner_id),
            )
        SearchDocument.objects.filter(pk__in=[pk for pk, *_ in some]).delete()
        spending.spend(len(some))
        if spending.is_spent:
            return False


# --- Abandoned indexes ----------------------------------------------------------------------------------


@transaction.atomic
def abandon_index(**whose: UUID | bool) -> None:
    """Detach indexes from their user or scope, so that searches ignore them and a worker deletes them in batches."""
    owners = lock_owners(Q(**whose))
    SearchOwner.objects.filter(pk__in=[owner.pk for owner in owners]).update(user=None, scope=None)


def _abandoned() -> QuerySet[SearchOwner]:
    return SearchOwner.objects.filter(user=None, scope=None)


@transaction.atomic
def delete_abandoned(budget: Budget) -> bool:
    """Delete rows of abandoned indexes within the budget; return whether all are deleted."""
    spending = budget.start()
    for owner_id in list(_abandoned().values_list("pk", flat=True)):
        for model in (SearchPosting, SearchBlock, SearchVectors, SearchCodes, SearchDocument):
            at_once = CODES_DELETED_AT_ONCE if model in (SearchBlock, SearchCodes) else AT_ONCE
            if not delete_some(model._default_manager.filter(owner=owner_id), spending, at_once):
                return False
        SearchOwner.objects.filter(pk=owner_id).delete()
    return True
