"""Every write to the search index: documents come in at the end, are sealed into blocks, and leave without a trace.

What is shared stands in its user's index, and in that of the scope. Owners are locked after conversations and entries
(`forget_reach`), users before scopes. Ordinals are given under the owner's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID, uuid4

import numpy as np
from django.db import transaction
from django.db.models import QuerySet

from chatapp.actions.claims import note_entry, note_messages
from chatapp.actions.search_rows import append_postings, insert_documents
from chatapp.actions.tombstones import lift_wished_back
from chatapp.actions.vectors import remove_vectors
from chatapp.models import (
    Conversation,
    MemoryEntry,
    Message,
    SearchBlock,
    SearchCursor,
    SearchDocument,
    SearchOwner,
    SearchPosting,
)
from chatapp.search.index import (
    ANALYSIS_VERSION,
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
from chatapp.selectors.memory import withdrawn_entries
from chatapp.selectors.unindexed import Batch, NewDocument, documents_of, message_documents, next_batch

SEAL_FROM = 256
"""Fewer documents than this stay unsealed: they are scored from their own rows."""
SEAL_AT_ONCE = 4_096
"""More than this is sealed in several transactions: nobody waits long for the lock. A common term's postings are
written once in each, so a long import waits until there are so many."""
_TERMS_PER_QUERY = 900


def index_conversation(conversation_id: UUID) -> int:
    """Everything said since the last time; how many documents came in. Safe to repeat, and to run twice at once."""
    conversation = Conversation.objects.filter(pk=conversation_id, temporary=False).first()
    if conversation is None:
        return 0
    added = 0
    while (batch := next_batch(conversation_id)) is not None:
        added += _store_batch(conversation, batch)
        seal_documents(at_least=SEAL_AT_ONCE, user_id=conversation.user_id)
    seal_documents(user_id=conversation.user_id)
    return added


@transaction.atomic
def _store_batch(conversation: Conversation, batch: Batch) -> int:
    if not Conversation.objects.select_for_update().filter(pk=conversation.pk).exists():
        return 0
    owner = _lock_owner(user_id=conversation.user_id)
    cursor, _ = SearchCursor.objects.get_or_create(conversation=conversation)
    if cursor.position != batch.after_position:
        return 0  # another worker was faster
    said = Message.objects.filter(conversation=conversation, position__gt=batch.after_position)
    present = set(said.filter(position__lte=batch.position, forgotten_at=None).values_list("pk", flat=True))
    documents = [document for document in batch.documents if document.source_id in present]
    for row in said.filter(position__lte=batch.position).exclude(forgotten_at=None):
        documents += message_documents(row)  # as it is now: it may have lost words since the batch was read
    cursor.last_ordinal = _append(owner, documents, cursor.last_ordinal)
    cursor.position = batch.position
    cursor.save(update_fields=["position", "last_ordinal"])
    claiming = said.filter(position__lte=batch.position, role=Message.Role.USER)
    note_messages(conversation.user_id, claiming.only("role", "parts", "created_at"))
    lift_wished_back(conversation.user_id, claiming.values_list("pk", flat=True))
    return len(documents)


def _lock_owner(*, user_id: UUID | None = None, scope_id: UUID | None = None) -> SearchOwner:
    """Of one of the two."""
    owners = SearchOwner.objects.select_for_update()
    new = {"analysis_version": ANALYSIS_VERSION}
    if scope_id is not None:
        return owners.get_or_create(scope_id=scope_id, defaults=new)[0]
    assert user_id is not None
    return owners.get_or_create(user_id=user_id, defaults=new)[0]


def lock_indexes_of(user_ids: Iterable[UUID]) -> None:
    """Once all conversations are locked, by whoever writes to indexes of several users and scopes in turn."""
    owners = SearchOwner.objects.select_for_update().filter(user__in=set(user_ids))
    list(owners.order_by("pk").values_list("pk"))


def _append(owner: SearchOwner, documents: Sequence[NewDocument], previous: int) -> int:
    """Each follows the one before it; the ordinal of the last."""
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
    """Called in the transaction that writes the entry; replaces what was known of it. A withdrawn one is not found."""
    remove_entries(entry.user_id, [entry.pk])
    if not withdrawn_entries().filter(pk=entry.pk).exists():
        _append(_lock_owner(user_id=entry.user_id), _documents(entry, entry.conversation_id), NO_ORDINAL)
        if entry.scope_id is not None:
            _index_shared(entry, entry.scope_id)
    note_entry(entry)


def _index_shared(entry: MemoryEntry, scope_id: UUID) -> None:
    """Without a trace of where it was said."""
    _append(_lock_owner(scope_id=scope_id), _documents(entry, None), NO_ORDINAL)
    seal_documents(scope_id=scope_id)


def _documents(entry: MemoryEntry, conversation_id: UUID | None) -> list[NewDocument]:
    kind = SearchDocument.Kind.ENTRY
    return list(documents_of(kind, entry.pk, entry.text, entry.created_at, conversation_id))


@transaction.atomic
def reindex_message(row: Message) -> None:
    """Called in the transaction that takes words out of it. What is not indexed yet will be, as it is then."""
    cursor = SearchCursor.objects.filter(conversation_id=row.conversation_id).first()
    remove_messages(row.user_id, [row.pk])
    note_messages(row.user_id, [row])
    if cursor is not None and row.position <= cursor.position:
        _append(_lock_owner(user_id=row.user_id), list(message_documents(row)), NO_ORDINAL)


# --- Sealing --------------------------------------------------------------------------------------------


def seal_documents(*, at_least: int = SEAL_FROM, **whose: UUID) -> None:
    """Moves the oldest unsealed documents into blocks until fewer than `at_least` are left."""
    while _seal_some(at_least, **whose):
        pass


@transaction.atomic
def _seal_some(at_least: int, **whose: UUID) -> bool:
    owner = _lock_owner(**whose)
    if owner.next_ordinal - owner.sealed_ordinal < at_least:
        return False
    first = owner.sealed_ordinal
    number = first // BLOCK
    end = min(owner.next_ordinal, first + SEAL_AT_ONCE, (number + 1) * BLOCK)
    rows = SearchDocument.objects.filter(owner=owner, ordinal__gte=first, ordinal__lt=end).order_by("ordinal")
    _append_columns(owner, number, first, end, rows)
    stored = rows.values_list("ordinal", "terms", "counts")
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
    """From where they are shared, too."""
    entries = SearchDocument.objects.filter(source_id__in=entry_ids, kind=SearchDocument.Kind.ENTRY)
    _remove(entries.filter(owner__user_id=user_id))
    _remove(entries.filter(owner__scope__isnull=False))


def unshare_entries(entry_ids: Collection[UUID]) -> None:
    """Their users' own indexes keep them."""
    entries = SearchDocument.objects.filter(source_id__in=entry_ids, kind=SearchDocument.Kind.ENTRY)
    _remove(entries.filter(owner__scope__isnull=False))


def remove_messages(user_id: UUID, message_ids: Sequence[UUID]) -> None:
    said = SearchDocument.objects.filter(source_id__in=message_ids, kind=SearchDocument.Kind.MESSAGE)
    _remove(said.filter(owner__user_id=user_id))


def remove_conversation(conversation: Conversation) -> None:
    """Its messages; what memory entries say of it is theirs."""
    said = SearchDocument.objects.filter(conversation=conversation).exclude(kind=SearchDocument.Kind.ENTRY)
    _remove(said.filter(owner__user_id=conversation.user_id))


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
    """Each comes again with its users' own."""
    SearchOwner.objects.filter(scope__isnull=False).delete()


@transaction.atomic
def delete_index(user_id: UUID) -> None:
    SearchCursor.objects.filter(conversation__user_id=user_id).delete()
    SearchOwner.objects.filter(user_id=user_id).delete()


def rebuild_index(user_id: UUID) -> int:
    """The whole index of a user from the rows it stands for; how many documents it has."""
    delete_index(user_id)
    conversations = Conversation.objects.filter(user_id=user_id, temporary=False).order_by("created_at", "pk")
    for conversation_id in conversations.values_list("pk", flat=True):
        index_conversation(conversation_id)
    kept = MemoryEntry.objects.filter(user_id=user_id, state=MemoryEntry.State.KEPT)
    for entry in kept.order_by("created_at", "pk"):
        index_entry(entry)
    seal_documents(user_id=user_id)
    return SearchOwner.objects.filter(user_id=user_id).values_list("document_count", flat=True).first() or 0
