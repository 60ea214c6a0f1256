"""Writes the search index: appends documents, seals them into blocks, removes them.

A shared entry is in the index of its user and in that of the scope. Ordinals are given under the lock of the owner
row, which is taken after those of conversations and entries; the user's before the scope's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.tombstones import lift_wished_back
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import withdrawn_entries
from chatapp.operations.work_budget import PIECE, TO_THE_END, Pace
from chatapp.recall.actions.bulk_writes import append_postings, insert_documents
from chatapp.recall.actions.claims import find_message_claims, note_entry, note_messages, store_message_claims
from chatapp.recall.actions.removal import abandon_index, delete_abandoned
from chatapp.recall.actions.vectors import remove_vectors
from chatapp.recall.analysis import ANALYSIS_VERSION
from chatapp.recall.index_format import (
    BLOCK,
    COLUMNS,
    NO_ORDINAL,
    StoredTerms,
    blank_rows,
    drop_postings,
    group_by_term,
    join_terms,
    minute_of,
)
from chatapp.recall.models import SearchBlock, SearchCursor, SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.selectors.unindexed import Batch, NewDocument, documents_of, message_documents, next_batch

SEAL_FROM = 256
"""Fewer documents than this are not sealed: they are scored from their own rows."""
SEAL_AT_ONCE = 1_024
SEALED_TERMS = 10_000
"""At most so many documents and terms are sealed in one transaction: others wait for the lock."""
_TERMS_PER_QUERY = 900


def index_conversation(conversation_id: UUID, pace: Pace = TO_THE_END) -> int:
    """Index what was said since the last time; return how many documents were added. Safe to run twice at once.

    It stops when the time of `pace` is over: `next_batch` says whether anything is left.
    """
    conversation = Conversation.objects.filter(pk=conversation_id, temporary=False).first()
    if conversation is None:
        return 0
    added = 0

    def step() -> bool:
        nonlocal added
        batch = next_batch(conversation_id)
        if batch is None:
            return not _seal_some(SEAL_FROM, user_id=conversation.owner_id)
        stored = _store_batch(conversation, batch)
        added += stored or 0
        return stored is None

    if connection.in_atomic_block:
        pace = replace(pace, sleep=lambda _: None)
    pace.work(step)
    return added


def _store_batch(conversation: Conversation, batch: Batch) -> int | None:
    """Return how many documents were stored; None where the conversation is gone, or another worker was faster."""
    said = Message.objects.filter(
        conversation=conversation, position__gt=batch.after_position, position__lte=batch.position
    )
    claiming = list(
        said.filter(role=Message.Role.USER, forgotten_at=None).only("role", "parts", "created_at")
    )
    claims = find_message_claims(conversation.owner_id, claiming)
    with transaction.atomic():
        if not Conversation.objects.select_for_update().filter(pk=conversation.pk).exists():
            return None
        owner = _lock_owner(user_id=conversation.user_id)
        cursor, _ = SearchCursor.objects.get_or_create(conversation=conversation)
        if cursor.position != batch.after_position:
            return None
        present = set(said.filter(forgotten_at=None).values_list("pk", flat=True))
        documents = [document for document in batch.documents if document.source_id in present]
        emptied = list(said.exclude(forgotten_at=None))
        # Read anew: they may have lost words since the batch was read.
        for row in emptied:
            documents += message_documents(row)
        cursor.last_ordinal = _append(owner, documents, cursor.last_ordinal)
        cursor.position = batch.position
        cursor.save(update_fields=["position", "last_ordinal"])
        store_message_claims(
            conversation.owner_id,
            [row for row in claiming if row.pk in present],
            [claim for claim in claims if claim.message_id in present],
        )
        note_messages(conversation.owner_id, emptied)
        lift_wished_back(conversation.owner_id, [row.pk for row in (*claiming, *emptied)])
        return len(documents)


def _lock_owner(*, user_id: UUID | None = None, scope_id: UUID | None = None) -> SearchOwner:
    """Lock and return the index of a user or of a scope; one that does not exist is made."""
    owners = SearchOwner.objects.select_for_update()
    new = {"analysis_version": ANALYSIS_VERSION}
    if scope_id is not None:
        return owners.get_or_create(scope_id=scope_id, defaults=new)[0]
    assert user_id is not None
    return owners.get_or_create(user_id=user_id, defaults=new)[0]


def lock_indexes_of(user_ids: Iterable[UUID]) -> None:
    """Lock the indexes of several users before any scope's, after all conversations are locked."""
    owners = SearchOwner.objects.select_for_update().filter(user__in=set(user_ids))
    list(owners.order_by("pk").values_list("pk"))


def _append(owner: SearchOwner, documents: Sequence[NewDocument], previous: int) -> int:
    """Store documents that follow each other, the first of them `previous`; return the ordinal of the last."""
    rows = []
    for ordinal, document in enumerate(documents, start=owner.next_ordinal):
        rows.append(document.row(ordinal, previous))
        rows[-1].owner = owner
        previous = ordinal
    insert_documents(rows)
    if owner.analysed_ordinal == owner.next_ordinal:
        owner.analysed_ordinal += len(rows)
    owner.next_ordinal += len(rows)
    owner.document_count += len(rows)
    owner.total_length += sum(row.length for row in rows)
    owner.save(update_fields=["next_ordinal", "analysed_ordinal", "document_count", "total_length"])
    return previous


@transaction.atomic
def index_entry(entry: MemoryEntry) -> None:
    """Index an entry in the transaction that writes it, in place of its earlier text. A withdrawn one is removed."""
    remove_entries(entry.user_id, [entry.pk])
    if not withdrawn_entries().filter(pk=entry.pk).exists():
        _append(_lock_owner(user_id=entry.user_id), _documents(entry, entry.conversation_id), NO_ORDINAL)
        if entry.scope_id is not None:
            _index_shared(entry, entry.scope_id)
    note_entry(entry)


def _index_shared(entry: MemoryEntry, scope_id: UUID) -> None:
    """Index an entry for the scope, without its conversation."""
    _append(_lock_owner(scope_id=scope_id), _documents(entry, None), NO_ORDINAL)
    seal_documents(scope_id=scope_id)


def _documents(entry: MemoryEntry, conversation_id: UUID | None) -> list[NewDocument]:
    kind = SearchDocument.Kind.ENTRY
    return list(documents_of(kind, entry.pk, entry.text, entry.created_at, conversation_id))


@transaction.atomic
def reindex_message(row: Message) -> None:
    """Index a message again in the transaction that changes its words, unless it is not indexed yet."""
    cursor = SearchCursor.objects.filter(conversation_id=row.conversation_id).first()
    remove_messages(row.user_id, [row.pk])
    note_messages(row.user_id, [row])
    if cursor is not None and row.position <= cursor.position:
        _append(_lock_owner(user_id=row.user_id), list(message_documents(row)), NO_ORDINAL)


# --- Sealing --------------------------------------------------------------------------------------------


def seal_documents(at_least: int = SEAL_FROM, **whose: UUID) -> None:
    """Move the oldest unsealed documents into blocks until fewer than `at_least` are left."""
    while _seal_some(at_least, **whose):
        pass


@transaction.atomic
def _seal_some(at_least: int, **whose: UUID) -> bool:
    """Seal as many documents as one short transaction takes; return whether there were any."""
    owner = _lock_owner(**whose)
    if owner.next_ordinal - owner.sealed_ordinal < at_least:
        return False
    first = owner.sealed_ordinal
    number = first // BLOCK
    end = min(owner.next_ordinal, first + SEAL_AT_ONCE, (number + 1) * BLOCK)
    # Documents of a conversation that is being deleted are left out; their rows in the block stay blank.
    gone = Q(kind=SearchDocument.Kind.MESSAGE, conversation__isnull=False, conversation__user=None)
    rows = SearchDocument.objects.filter(~gone, owner=owner, ordinal__gte=first, ordinal__lt=end)
    rows = rows.order_by("ordinal")
    stored = list(rows.values_list("ordinal", "terms", "counts"))
    sizes = np.cumsum([len(counts) for _, _, counts in stored])
    kept = max(1, int(np.searchsorted(sizes, SEALED_TERMS, "right")))
    if kept < len(stored):
        stored, end = stored[:kept], stored[kept][0]
    _append_columns(owner, number, first, end, rows.filter(ordinal__lt=end))
    append_postings(owner, number, group_by_term([StoredTerms(*columns) for columns in stored]))
    owner.sealed_ordinal, owner.edition = end, uuid4()
    owner.save(update_fields=["sealed_ordinal", "edition"])
    return True


def _append_columns(
    owner: SearchOwner, number: int, first: int, end: int, documents: QuerySet[SearchDocument]
) -> None:
    columns = blank_rows(end - first)
    for ordinal, previous, said_at, length in documents.values_list(
        "ordinal", "previous", "said_at", "length"
    ):
        columns[ordinal - first] = (previous, minute_of(said_at), length, 1)
    block, _ = SearchBlock.objects.get_or_create(owner=owner, number=number)
    block.columns = bytes(block.columns) + columns.tobytes()
    block.save(update_fields=["columns"])


# --- Removal --------------------------------------------------------------------------------------------


def remove_entries(user_id: UUID, entry_ids: Collection[UUID]) -> None:
    """Remove entries from the index of their user and of scopes."""
    entries = SearchDocument.objects.filter(source_id__in=entry_ids, kind=SearchDocument.Kind.ENTRY)
    _remove(entries.filter(owner__user_id=user_id))
    _remove(entries.filter(owner__scope__isnull=False))


def unshare_entries(entry_ids: Collection[UUID]) -> None:
    """Remove entries from the indexes of scopes only."""
    entries = SearchDocument.objects.filter(source_id__in=entry_ids, kind=SearchDocument.Kind.ENTRY)
    _remove(entries.filter(owner__scope__isnull=False))


def remove_messages(user_id: UUID, message_ids: Sequence[UUID]) -> None:
    said = SearchDocument.objects.filter(source_id__in=message_ids, kind=SearchDocument.Kind.MESSAGE)
    _remove(said.filter(owner__user_id=user_id))


@transaction.atomic
def _remove(documents: QuerySet[SearchDocument]) -> None:
    for owner_id in sorted(set(documents.values_list("owner_id", flat=True))):
        owner = SearchOwner.objects.select_for_update().filter(pk=owner_id).first()
        if owner is not None:
            _remove_from(owner, documents)


def _remove_from(owner: SearchOwner, documents: QuerySet[SearchDocument]) -> None:
    rows = list(documents.filter(owner=owner).order_by("ordinal"))
    sealed = [row for row in rows if row.ordinal < owner.sealed_ordinal]
    for number in sorted({row.ordinal // BLOCK for row in sealed}):
        _clean_block(owner, number, [row for row in sealed if row.ordinal // BLOCK == number])
    remove_vectors(owner, [row.ordinal for row in rows])
    documents.filter(owner=owner).delete()
    owner.document_count -= len(rows)
    owner.total_length -= sum(row.length for row in rows)
    owner.edition = uuid4()
    owner.save(update_fields=["document_count", "total_length", "edition"])


def _clean_block(owner: SearchOwner, number: int, rows: Sequence[SearchDocument]) -> None:
    gone = np.array([row.ordinal % BLOCK for row in rows], dtype=np.int64)
    block = SearchBlock.objects.get(owner=owner, number=number)
    columns = np.frombuffer(block.columns, COLUMNS).copy()
    for name in ("minute", "length", "live"):
        columns[name][gone] = 0
    block.columns = columns.tobytes()
    block.save(update_fields=["columns"])
    terms, _, _ = join_terms([StoredTerms(row.ordinal, row.terms, row.counts) for row in rows])
    distinct = np.unique(terms).tolist()
    for start in range(0, len(distinct), _TERMS_PER_QUERY):
        _clean_postings(owner, number, distinct[start : start + _TERMS_PER_QUERY], gone)


def _clean_postings(owner: SearchOwner, number: int, terms: Sequence[int], gone: np.ndarray) -> None:
    postings = list(SearchPosting.objects.filter(owner=owner, block=number, term__in=terms))
    for posting in postings:
        posting.entries = drop_postings(posting.entries, gone)
    SearchPosting.objects.bulk_update([row for row in postings if row.entries], ["entries"], batch_size=200)
    SearchPosting.objects.filter(pk__in=[row.pk for row in postings if not row.entries]).delete()


# --- Starting over --------------------------------------------------------------------------------------


def delete_shared_indexes() -> None:
    """Delete the indexes of all scopes; `rebuild_index` of their users makes them again."""
    abandon_index(scope__isnull=False)


@transaction.atomic
def delete_index(user_id: UUID) -> None:
    """Detach the index of a user: nothing in it is found any more, and a worker deletes its rows in pieces."""
    SearchCursor.objects.filter(conversation__user_id=user_id).delete()
    abandon_index(user_id=user_id)


def rebuild_index(user_id: UUID) -> int:
    """Delete the index of a user and make it again from its sources; return how many documents it has."""
    delete_index(user_id)
    TO_THE_END.work(lambda: delete_abandoned(PIECE))
    conversations = Conversation.objects.filter(user_id=user_id, temporary=False).order_by("created_at", "pk")
    for conversation_id in conversations.values_list("pk", flat=True):
        index_conversation(conversation_id)
    kept = MemoryEntry.objects.filter(user_id=user_id, state=MemoryEntry.State.KEPT)
    for entry in kept.order_by("created_at", "pk"):
        index_entry(entry)
    seal_documents(user_id=user_id)
    return SearchOwner.objects.filter(user_id=user_id).values_list("document_count", flat=True).first() or 0
