"""Writes the search index: appends documents and seals them into blocks.

A shared entry is in the index of its user and in that of the scope. Ordinals are assigned under the lock of the owner
row. Lock order: conversations and entries, the user's owner row, the scope's owner row.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.tombstones import lift_requested
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import withdrawn_entries
from chatapp.operations.database.access import lock_rows
from chatapp.operations.database.statements import (
    as_key,
    as_stored,
    columns_of,
    execute,
    locked,
    read_models,
    update_row,
)
from chatapp.operations.database.work_budget import PIECE, UNBOUNDED, Pace
from chatapp.recall.actions.bulk_writes import append_postings, insert_documents
from chatapp.recall.actions.claims import (
    NewClaim,
    find_entry_claims,
    find_message_claims,
    note_messages,
    replace_claims,
)
from chatapp.recall.actions.removal import abandon_index, delete_abandoned, lock_owners, remove_sources
from chatapp.recall.analysis import ANALYSIS_VERSION
from chatapp.recall.index_format import BLOCK, NO_ORDINAL, StoredTerms, blank_rows, group_by_term, minute_of
from chatapp.recall.models import SearchBlock, SearchDocument, SearchOwner
from chatapp.recall.selectors.unindexed import (
    Batch,
    StoredDocument,
    documents_of,
    message_documents,
    next_batch,
)
from memory.long_term.memory_requests import read_remember_requests

SEAL_FROM = 256
"""Fewer documents than this are not sealed but scored from their own rows."""
FEW = 20
"""Messages per conversation when several conversations are indexed together."""
FEW_ENTRIES = 10
"""Entries per transaction when an index is rebuilt."""
SEAL_AT_ONCE = 1_024
SEALED_TERMS = 1_500
"""Documents and terms sealed per transaction at most, because others wait for the lock. 5,000 distinct terms took about
70 ms of CPU."""


def index_conversation(conversation_id: UUID, pace: Pace = UNBOUNDED) -> int:
    """Index new messages of a conversation; return how many documents were added. Safe to run concurrently.

    Stop when the time of `pace` is over; `next_batch` shows whether any messages are left.
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
        stored = _store_batch(batch, _read_said(batch))
        added += stored or 0
        # None: the conversation was deleted, or another worker is indexing it.
        return stored is None

    # Do not sleep in the caller's transaction: that would only hold the lock for longer.
    if connection.in_atomic_block:
        pace = replace(pace, sleep=lambda _: None)
    pace.work(step)
    return added


def index_some(conversation_ids: deque[UUID]) -> list[UUID]:
    """Index new messages of the first conversations, as many as fit one short transaction, and remove these
    conversations from the queue. Return those that `index_conversation` has to continue.

    Use one transaction for all on SQLite, and one per conversation on PostgreSQL.
    """
    read: list[tuple[Batch, _Said]] = []
    spending = PIECE.start()
    while conversation_ids and not spending.is_spent:
        batch = next_batch(conversation_ids.popleft(), FEW)
        if batch is not None:
            read.append((batch, _read_said(batch)))
            spending.spend(len(batch.documents))
    # On PostgreSQL, one transaction would lock a conversation after an index, against the lock order.
    with transaction.atomic() if connection.vendor == "sqlite" and read else nullcontext():
        for batch, said in read:
            _store_batch(batch, said)
    users = {batch.user_id for batch, _ in read}
    unsealed = SearchOwner.objects.filter(user__in=users, next_ordinal__gte=F("sealed_ordinal") + SEAL_FROM)
    to_seal = set(unsealed.values_list("user_id", flat=True)) if read else set()
    return [batch.conversation_id for batch, _ in read if batch.is_full or batch.user_id in to_seal]


@dataclass(frozen=True, slots=True)
class _Said:
    """Claims in a batch's user messages, and the messages that ask to remember something. Parsing them takes too long
    for a transaction."""

    claiming: list[UUID]
    claims: list[NewClaim]
    asking: set[UUID]


def _read_said(batch: Batch) -> _Said:
    said = [row for row in batch.messages if row.role == Message.Role.USER]
    claims = find_message_claims(batch.user_id, said)
    return _Said([row.pk for row in said], claims, {row.pk for row in said if _asks_to_remember(row)})


_LAST_ORDINAL = """
SELECT last_ordinal FROM chatapp_conversation WHERE id = %s AND indexed_below = %s AND user_id IS NOT NULL
"""
_PARTS = """
SELECT id, parts FROM chatapp_message
WHERE conversation_id = %s AND position >= %s AND position < %s AND role <> 'tool'
"""
"""Tool messages may be long, and are not indexed."""
_INDEXED = "UPDATE chatapp_conversation SET indexed_below = %s, last_ordinal = %s WHERE id = %s"


def _store_batch(batch: Batch, said: _Said) -> int | None:
    """Store a batch and return how many documents were stored; None if the conversation was deleted or another worker
    was faster."""
    with transaction.atomic():
        found = execute(locked(_LAST_ORDINAL), batch.conversation_id, batch.start).fetchone()
        if found is None:
            return None
        # Lock the index only now, because conversations are locked before indexes.
        owner = _lock_owner(user_id=batch.user_id)
        rows = execute(_PARTS, batch.conversation_id, batch.start, batch.end).fetchall()
        # Messages deleted since the batch was read are missing here. Their documents must not come back.
        parts = {as_key(key): json.loads(parts) for key, parts in rows}
        present = {row.pk for row in batch.messages if parts.get(row.pk) == row.parts}
        sources = {as_stored(key) for key in present}
        documents = [document for document in batch.documents if document.source_id in sources]
        # Messages that were edited or partly forgotten since the batch was read.
        changed = (
            list(Message.objects.filter(pk__in=parts.keys() - present)) if len(parts) > len(present) else []
        )
        for row in changed:
            documents += [document.stored() for document in message_documents(row)]
        last_ordinal = _append(owner, [documents], found[0])
        execute(_INDEXED, batch.end, last_ordinal, batch.conversation_id)
        claiming = [key for key in said.claiming if key in present]
        replace_claims(batch.user_id, "message_id", claiming, said.claims)
        if changed:
            note_messages(batch.user_id, changed)
        asking = (said.asking & present) | {row.pk for row in changed if _asks_to_remember(row)}
        # Few messages ask to remember. Without this check, each batch would read its messages again.
        if asking:
            lift_requested(batch.user_id, asking)
        return len(documents)


def _asks_to_remember(row: Message) -> bool:
    return any(read_remember_requests(message_values.text_of(row.parts)))


def _lock_owner(*, user_id: UUID | None = None, scope_id: UUID | None = None) -> SearchOwner:
    """Lock and return the index of a user or scope. Create it if it does not exist."""
    column, key = ("user_id", user_id) if scope_id is None else ("scope_id", scope_id)
    assert key is not None
    sql = f"SELECT {columns_of(SearchOwner, 'owner')} FROM chatapp_searchowner AS owner WHERE {column} = %s"
    found: tuple[SearchOwner] | None = next(read_models([SearchOwner], locked(sql), key), None)
    if found is not None:
        return found[0]
    # Reached only for a new index, because the ORM builds its SQL again on each call.
    owners = SearchOwner.objects.select_for_update()
    # Set the current version: with the default, a new index would be analysed again.
    return owners.get_or_create({"analysis_version": ANALYSIS_VERSION}, **{column: key})[0]


def lock_indexes_of(user_ids: Iterable[UUID], entries: QuerySet[MemoryEntry] | None = None) -> None:
    """Lock the indexes of several users, then those of the scopes of `entries`. Lock all conversations before."""
    if connection.features.has_select_for_update:
        shared = Q(scope__in=entries.values("scope")) if entries is not None else Q()
        lock_owners(Q(user__in=set(user_ids)) | shared)


def _append(owner: SearchOwner, texts: Iterable[Sequence[StoredDocument]], previous: int = NO_ORDINAL) -> int:
    """Store the documents of each text, chained by `previous`: a text's first document follows `previous`. Return the
    last ordinal."""
    rows: list[tuple[Any, ...]] = []
    first, last, length = owner.next_ordinal, previous, 0
    for documents in texts:
        last = previous
        for document in documents:
            ordinal = first + len(rows)
            rows.append((owner.pk, ordinal, last, *document))
            last, length = ordinal, length + document.length
    insert_documents(rows)
    # Everything below the mark is analysed. While older documents wait for that, new ones do not move the mark.
    if owner.analysed_ordinal == owner.next_ordinal:
        owner.analysed_ordinal += len(rows)
    owner.next_ordinal += len(rows)
    owner.document_count += len(rows)
    owner.total_length += length
    update_row(owner, "next_ordinal", "analysed_ordinal", "document_count", "total_length")
    return last


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Documents of entries by entry id, and the entries' claims. Computing them takes too long for a transaction."""

    documents: Mapping[UUID, Sequence[StoredDocument]]
    claims: list[NewClaim]


def read_entries(user_id: UUID, entries: Iterable[MemoryEntry]) -> ReadEntries:
    """Return the documents and claims of the entries' current texts, for `index_entries`."""
    entries = list(entries)
    documents = {entry.pk: _documents(entry, entry.conversation_id) for entry in entries}
    return ReadEntries(documents, find_entry_claims(user_id, entries))


def index_entry(entry: MemoryEntry) -> None:
    index_entries(entry.user_id, [entry])


@transaction.atomic
def index_entries(
    user_id: UUID, entries: Sequence[MemoryEntry], read: ReadEntries | None = None, *, are_new: bool = False
) -> None:
    """Replace the documents and claims of entries, in the transaction that writes the entries; `are_new` ones have none
    yet. Remove withdrawn entries. `read` was computed before the transaction; by default it is computed now."""
    read = read or read_entries(user_id, entries)
    ids = [entry.pk for entry in entries]
    if not are_new:
        remove_sources(ids)
    extracted = [entry.pk for entry in entries if entry.compaction_id]
    undone = withdrawn_entries().filter(pk__in=extracted)
    withdrawn = set(undone.values_list("pk", flat=True)) if extracted else set()
    standing = [entry for entry in entries if entry.pk not in withdrawn]
    if standing:
        _append(_lock_owner(user_id=user_id), [read.documents[entry.pk] for entry in standing])
    # Use one order everywhere, so that two transactions do not deadlock.
    for scope_id in sorted({entry.scope_id for entry in standing if entry.scope_id}):
        _index_shared([entry for entry in standing if entry.scope_id == scope_id], scope_id)
    replace_claims(user_id, "entry_id", ids, read.claims)


def move_documents(user_id: UUID, entry_ids: Collection[UUID], conversation_id: UUID | None) -> None:
    """Set or clear the conversation of the entries' documents, in the transaction that moves the entries."""
    # Lock the index like all writers, or this update and a worker could deadlock.
    lock_owners(Q(user=user_id))
    documents = SearchDocument.objects.filter(source_id__in=entry_ids, owner__user=user_id)
    documents.update(conversation=conversation_id)


def _index_shared(entries: Iterable[MemoryEntry], scope_id: UUID) -> None:
    """Index entries for the scope, without their conversations."""
    _append(_lock_owner(scope_id=scope_id), [_documents(entry, None) for entry in entries])
    # Seal here, because workers that index conversations only seal the indexes of users.
    seal_documents(scope_id=scope_id)


def _documents(entry: MemoryEntry, conversation_id: UUID | None) -> list[StoredDocument]:
    found = documents_of(SearchDocument.Kind.ENTRY, entry.pk, entry.text, entry.created_at, conversation_id)
    return [document.stored() for document in found]


@transaction.atomic
def reindex_messages(user_id: UUID, rows: Sequence[Message]) -> None:
    """Index messages of the user again, in the transaction that changes their texts. Skip messages not indexed yet."""
    homes = {row.conversation_id for row in rows}
    indexed = dict(Conversation.with_unowned.filter(pk__in=homes).values_list("pk", "indexed_below"))
    remove_sources([row.pk for row in rows])
    note_messages(user_id, rows)
    texts = [
        [document.stored() for document in message_documents(row)]
        for row in rows
        if row.position < indexed.get(row.conversation_id, 0)
    ]
    if any(texts):
        _append(_lock_owner(user_id=user_id), texts)


# --- Sealing --------------------------------------------------------------------------------------------


def seal_documents(at_least: int = SEAL_FROM, **whose: UUID) -> None:
    """Move the oldest unsealed documents into blocks until fewer than `at_least` are left."""
    while _seal_some(at_least, **whose):
        pass


@transaction.atomic
def _seal_some(at_least: int, **whose: UUID) -> bool:
    """Seal as many documents as fit a short transaction; return whether any were sealed."""
    owner = _lock_owner(**whose)
    if owner.next_ordinal - owner.sealed_ordinal < at_least:
        return False
    first = owner.sealed_ordinal
    number = first // BLOCK
    end = min(owner.next_ordinal, first + SEAL_AT_ONCE, (number + 1) * BLOCK)
    # Skip documents of a conversation that is being deleted. Their rows in the block stay blank.
    gone = Q(kind=SearchDocument.Kind.MESSAGE, conversation__isnull=False, conversation__user=None)
    rows = SearchDocument.objects.filter(~gone, owner=owner, ordinal__gte=first, ordinal__lt=end)
    stored: list[StoredTerms] = []
    room = SEALED_TERMS
    # Read in chunks, because reading 1,024 documents to seal the few whose terms fit would hold the lock for long.
    for columns in rows.order_by("ordinal").values_list("ordinal", "terms", "counts").iterator(chunk_size=64):
        document = StoredTerms(*columns)
        room -= len(document.counts)
        # Seal at least one: a document with more terms than the limit would block all others forever.
        if room < 0 and stored:
            end = document.ordinal
            break
        stored.append(document)
    _append_columns(owner, number, first, end, rows.filter(ordinal__lt=end))
    append_postings(owner, number, group_by_term(stored))
    owner.sealed_ordinal, owner.edition = end, uuid4()
    owner.save(update_fields=["sealed_ordinal", "edition"])
    return True


def _append_columns(
    owner: SearchOwner, number: int, first: int, end: int, documents: QuerySet[SearchDocument]
) -> None:
    # Missing documents keep blank rows, because a document is found by its offset in the block.
    columns = blank_rows(end - first)
    for ordinal, previous, said_at, length in documents.values_list(
        "ordinal", "previous", "said_at", "length"
    ):
        columns[ordinal - first] = (previous, minute_of(said_at), length, 1)
    block, _ = SearchBlock.objects.get_or_create(owner=owner, number=number)
    block.columns = bytes(block.columns) + columns.tobytes()
    block.save(update_fields=["columns"])


# --- Rebuilding an index --------------------------------------------------------------------------------


def delete_shared_indexes() -> None:
    """Delete the indexes of all scopes. `rebuild_index` of their users creates them again."""
    abandon_index(scope__isnull=False)


def unindex_conversations(**which: UUID) -> None:
    """Mark all messages of conversations as not indexed. The caller removes their documents."""
    # Skip conversations not indexed yet: a worker may hold one while it waits for the index.
    indexed = Conversation.with_unowned.filter(**which, indexed_below__gt=0)
    lock_rows(indexed)
    indexed.update(indexed_below=0, last_ordinal=NO_ORDINAL)


@transaction.atomic
def delete_index(user_id: UUID) -> None:
    """Detach the index of a user, so that searches ignore it and a worker deletes its rows in batches."""
    # Lock conversations first, because a worker holds one while it waits for the index.
    unindex_conversations(user_id=user_id)
    abandon_index(user_id=user_id)


def rebuild_index(user_id: UUID) -> int:
    """Rebuild the index of a user from its sources; return how many documents it has."""
    delete_index(user_id)
    UNBOUNDED.work(lambda: delete_abandoned(PIECE))
    conversations = Conversation.objects.filter(user_id=user_id, temporary=False).order_by("created_at", "pk")
    for conversation_id in conversations.values_list("pk", flat=True):
        index_conversation(conversation_id)
    kept = MemoryEntry.objects.filter(user_id=user_id, state=MemoryEntry.State.KEPT).order_by(
        "created_at", "pk"
    )
    entry_ids = list(kept.values_list("pk", flat=True))
    for first in range(0, len(entry_ids), FEW_ENTRIES):
        some = kept.filter(pk__in=entry_ids[first : first + FEW_ENTRIES])
        # Read entries under their locks, because they may be edited, moved or forgotten meanwhile.
        with transaction.atomic():
            lock_rows(some)
            if entries := list(some):
                index_entries(user_id, entries)
    seal_documents(user_id=user_id)
    return SearchOwner.objects.filter(user_id=user_id).values_list("document_count", flat=True).first() or 0
