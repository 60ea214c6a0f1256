"""Writes the search index: appends documents and seals them into blocks.

A shared entry is in the index of its user and in that of the scope. Ordinals are given under the lock of the owner
row, which is taken after those of conversations and entries; the user's before the scope's.
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
from chatapp.operations.access import lock_rows
from chatapp.operations.statements import (
    as_key,
    as_stored,
    columns_of,
    execute,
    locked,
    read_models,
    update_row,
)
from chatapp.operations.work_budget import PIECE, TO_THE_END, Pace
from chatapp.recall.actions.bulk_writes import append_postings, insert_documents
from chatapp.recall.actions.claims import (
    NewClaim,
    find_entry_claims,
    find_message_claims,
    note_messages,
    store_entry_claims,
    store_message_claims,
)
from chatapp.recall.actions.removal import (
    abandon_index,
    delete_abandoned,
    lock_owners,
    remove_entries,
    remove_messages,
)
from chatapp.recall.analysis import ANALYSIS_VERSION
from chatapp.recall.index_format import (
    BLOCK,
    NO_ORDINAL,
    StoredTerms,
    blank_rows,
    group_by_term,
    minute_of,
)
from chatapp.recall.models import SearchBlock, SearchDocument, SearchOwner
from chatapp.recall.selectors.unindexed import (
    Batch,
    StoredDocument,
    documents_of,
    message_documents,
    next_batch,
)
from memory.memory_requests import read_remember_requests

SEAL_FROM = 256
"""Fewer documents than this are not sealed: they are scored from their own rows."""
FEW = 20
"""Messages of one conversation that are indexed together with those of others."""
FEW_ENTRIES = 10
"""Entries that are indexed in one transaction when an index is made again."""
SEAL_AT_ONCE = 1_024
SEALED_TERMS = 1_500
"""At most so many documents and terms are sealed in one transaction: others wait for the lock. 5,000 terms, each
another word, took about 70 ms of CPU."""


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
        stored = _store_batch(batch, _read_said(batch))
        added += stored or 0
        # None: the conversation is gone, or another worker is at it and goes on by itself.
        return stored is None

    # In the caller's transaction nobody else gets the lock during a rest: it would only be held longer.
    if connection.in_atomic_block:
        pace = replace(pace, sleep=lambda _: None)
    pace.work(step)
    return added


def index_some(conversation_ids: deque[UUID]) -> list[UUID]:
    """Index what was said in the first of these conversations, as much as fits one piece of work, and take them out.
    Return those that `index_conversation` has something left to do for.

    On SQLite all of it is one transaction; PostgreSQL locks rows, and gets one for each conversation.
    """
    read, spending = [], PIECE.start()
    while conversation_ids and not spending.is_spent:
        batch = next_batch(conversation_ids.popleft(), FEW)
        if batch is not None:
            read.append((batch, _read_said(batch)))
            spending.spend(len(batch.documents))
    # PostgreSQL would hold one index while it waits for the next conversation, against the order of locks.
    with transaction.atomic() if connection.vendor == "sqlite" and read else nullcontext():
        for batch, said in read:
            _store_batch(batch, said)
    users = {batch.user_id for batch, _ in read}
    unsealed = SearchOwner.objects.filter(user__in=users, next_ordinal__gte=F("sealed_ordinal") + SEAL_FROM)
    to_seal = set(unsealed.values_list("user_id", flat=True)) if read else set()
    # There may be more behind a full batch.
    return [
        batch.conversation_id for batch, _ in read if len(batch.messages) >= FEW or batch.user_id in to_seal
    ]


@dataclass(frozen=True, slots=True)
class _Said:
    """What the users of a batch claim, and which messages ask to remember: reading that takes too long for a
    transaction."""

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
"""Nothing that a tool said is indexed, and it may be long."""
_INDEXED = "UPDATE chatapp_conversation SET indexed_below = %s, last_ordinal = %s WHERE id = %s"


def _store_batch(batch: Batch, said: _Said) -> int | None:
    """Return how many documents were stored; None where the conversation is gone, or another worker was faster."""
    with transaction.atomic():
        found = execute(locked(_LAST_ORDINAL), batch.conversation_id, batch.start).fetchone()
        if found is None:
            return None
        # Only now: conversations are locked before indexes.
        owner = _lock_owner(user_id=batch.user_id)
        rows = execute(_PARTS, batch.conversation_id, batch.start, batch.end).fetchall()
        # What was deleted since the batch was read is missing here: its documents must not come back.
        parts = {as_key(key): json.loads(parts) for key, parts in rows}
        present = {row.pk for row in batch.messages if parts.get(row.pk) == row.parts}
        sources = {as_stored(key) for key in present}
        documents = [document for document in batch.documents if document.source_id in sources]
        # Read anew: they were edited, or lost words, since the batch was read.
        changed = (
            list(Message.objects.filter(pk__in=parts.keys() - present)) if len(parts) > len(present) else []
        )
        for row in changed:
            documents += [document.stored() for document in message_documents(row)]
        last_ordinal = _append(owner, [documents], found[0])
        execute(_INDEXED, batch.end, last_ordinal, batch.conversation_id)
        claiming = [key for key in said.claiming if key in present]
        store_message_claims(batch.user_id, claiming, said.claims)
        if changed:
            note_messages(batch.user_id, changed)
        asking = (said.asking & present) | {row.pk for row in changed if _asks_to_remember(row)}
        # Hardly a message asks: without this, each batch would read its messages once more.
        if asking:
            lift_requested(batch.user_id, asking)
        return len(documents)


def _asks_to_remember(row: Message) -> bool:
    return any(read_remember_requests(message_values.text_of(row.parts)))


def _lock_owner(*, user_id: UUID | None = None, scope_id: UUID | None = None) -> SearchOwner:
    """Lock and return the index of a user or of a scope; one that does not exist is made."""
    column, key = ("user_id", user_id) if scope_id is None else ("scope_id", scope_id)
    assert key is not None
    sql = f"SELECT {columns_of(SearchOwner, 'owner')} FROM chatapp_searchowner AS owner WHERE {column} = %s"
    found: tuple[SearchOwner] | None = next(read_models([SearchOwner], locked(sql), key), None)
    if found is not None:
        return found[0]
    # Only the first document of an index comes here: the ORM builds its statements anew each time.
    owners = SearchOwner.objects.select_for_update()
    # In the present version: with the default, a new index would be analysed again.
    return owners.get_or_create({"analysis_version": ANALYSIS_VERSION}, **{column: key})[0]


def lock_indexes_of(user_ids: Iterable[UUID], entries: QuerySet[MemoryEntry] | None = None) -> None:
    """Lock the indexes of several users, then those of the scopes of `entries`, after all conversations are locked."""
    if connection.features.has_select_for_update:
        shared = Q(scope__in=entries.values("scope")) if entries is not None else Q()
        lock_owners(Q(user__in=set(user_ids)) | shared)


def _append(owner: SearchOwner, texts: Iterable[Sequence[StoredDocument]], previous: int = NO_ORDINAL) -> int:
    """Store the documents of texts. Those of one text follow each other, the first of them `previous`. Return the
    ordinal of the last."""
    rows: list[tuple[Any, ...]] = []
    first, last, length = owner.next_ordinal, previous, 0
    for documents in texts:
        last = previous
        for document in documents:
            ordinal = first + len(rows)
            rows.append((owner.pk, ordinal, last, *document))
            last, length = ordinal, length + document.length
    insert_documents(rows)
    # The mark has no gaps: while older documents wait for the present analysis, new ones wait with them.
    if owner.analysed_ordinal == owner.next_ordinal:
        owner.analysed_ordinal += len(rows)
    owner.next_ordinal += len(rows)
    owner.document_count += len(rows)
    owner.total_length += length
    update_row(owner, "next_ordinal", "analysed_ordinal", "document_count", "total_length")
    return last


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """What entries say, by their keys, and what they claim: reading that takes too long for a transaction."""

    documents: Mapping[UUID, Sequence[StoredDocument]]
    claims: list[NewClaim]


def read_entries(user_id: UUID, entries: Iterable[MemoryEntry]) -> ReadEntries:
    """Return what entries of the user say now, for `index_entries`."""
    entries = list(entries)
    documents = {entry.pk: _documents(entry, entry.conversation_id) for entry in entries}
    return ReadEntries(documents, find_entry_claims(user_id, entries))


def index_entry(entry: MemoryEntry) -> None:
    index_entries(entry.user_id, [entry])


@transaction.atomic
def index_entries(
    user_id: UUID, entries: Sequence[MemoryEntry], read: ReadEntries | None = None, *, are_new: bool = False
) -> None:
    """Index entries of the user in the transaction that writes them, in place of their earlier texts; new ones have
    none. Withdrawn ones are removed. What they say was `read` before the transaction, or is read now."""
    read = read or read_entries(user_id, entries)
    ids = [entry.pk for entry in entries]
    if not are_new:
        remove_entries(user_id, ids)
    extracted = [entry.pk for entry in entries if entry.compaction_id]
    undone = withdrawn_entries().filter(pk__in=extracted)
    withdrawn = set(undone.values_list("pk", flat=True)) if extracted else set()
    standing = [entry for entry in entries if entry.pk not in withdrawn]
    if standing:
        _append(_lock_owner(user_id=user_id), [read.documents[entry.pk] for entry in standing])
    # In one order everywhere, so that two transactions do not wait for each other.
    for scope_id in sorted({entry.scope_id for entry in standing if entry.scope_id}):
        _index_shared([entry for entry in standing if entry.scope_id == scope_id], scope_id)
    store_entry_claims(user_id, ids, read.claims)


def move_documents(user_id: UUID, entry_ids: Collection[UUID], conversation_id: UUID | None) -> None:
    """Let the documents of entries name another conversation, or none, in the transaction that moves the entries."""
    # Under the lock, as all is written here: else this and a worker would wait for each other's rows.
    lock_owners(Q(user=user_id))
    documents = SearchDocument.objects.filter(source_id__in=entry_ids, owner__user=user_id)
    documents.update(conversation=conversation_id)


def _index_shared(entries: Iterable[MemoryEntry], scope_id: UUID) -> None:
    """Index entries for the scope, without their conversations."""
    _append(_lock_owner(scope_id=scope_id), [_documents(entry, None) for entry in entries])
    # Here, because the workers that index conversations seal the indexes of users alone.
    seal_documents(scope_id=scope_id)


def _documents(entry: MemoryEntry, conversation_id: UUID | None) -> list[StoredDocument]:
    found = documents_of(SearchDocument.Kind.ENTRY, entry.pk, entry.text, entry.created_at, conversation_id)
    return [document.stored() for document in found]


@transaction.atomic
def reindex_messages(user_id: UUID, rows: Sequence[Message]) -> None:
    """Index messages of the user again in the transaction that changes their words, unless they are not indexed yet."""
    homes = {row.conversation_id for row in rows}
    indexed = dict(Conversation.with_unowned.filter(pk__in=homes).values_list("pk", "indexed_below"))
    remove_messages(user_id, [row.pk for row in rows])
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
    stored: list[StoredTerms] = []
    room = SEALED_TERMS
    # A few at a time: reading 1,024 to seal those few whose terms fit would take long under the lock.
    for columns in rows.order_by("ordinal").values_list("ordinal", "terms", "counts").iterator(chunk_size=64):
        document = StoredTerms(*columns)
        room -= len(document.counts)
        # At least one is sealed: one with more terms than that would stop the others for ever.
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
    # Documents that are gone keep their rows: a document is found by its place in the block.
    columns = blank_rows(end - first)
    for ordinal, previous, said_at, length in documents.values_list(
        "ordinal", "previous", "said_at", "length"
    ):
        columns[ordinal - first] = (previous, minute_of(said_at), length, 1)
    block, _ = SearchBlock.objects.get_or_create(owner=owner, number=number)
    block.columns = bytes(block.columns) + columns.tobytes()
    block.save(update_fields=["columns"])


# --- Starting over --------------------------------------------------------------------------------------


def delete_shared_indexes() -> None:
    """Delete the indexes of all scopes; `rebuild_index` of their users makes them again."""
    abandon_index(scope__isnull=False)


def unindex_conversations(**which: UUID) -> None:
    """Let all messages of conversations be indexed anew. Their documents are the caller's to remove."""
    # One that is not indexed yet is left alone: its worker may hold it and wait for the index.
    indexed = Conversation.with_unowned.filter(**which, indexed_below__gt=0)
    lock_rows(indexed)
    indexed.update(indexed_below=0, last_ordinal=NO_ORDINAL)


@transaction.atomic
def delete_index(user_id: UUID) -> None:
    """Detach the index of a user: nothing in it is found any more, and a worker deletes its rows in pieces."""
    # Conversations first: whoever indexes one holds it and waits for the index.
    unindex_conversations(user_id=user_id)
    abandon_index(user_id=user_id)


def rebuild_index(user_id: UUID) -> int:
    """Delete the index of a user and make it again from its sources; return how many documents it has."""
    delete_index(user_id)
    TO_THE_END.work(lambda: delete_abandoned(PIECE))
    conversations = Conversation.objects.filter(user_id=user_id, temporary=False).order_by("created_at", "pk")
    for conversation_id in conversations.values_list("pk", flat=True):
        index_conversation(conversation_id)
    kept = MemoryEntry.objects.filter(user_id=user_id, state=MemoryEntry.State.KEPT).order_by(
        "created_at", "pk"
    )
    entry_ids = list(kept.values_list("pk", flat=True))
    for first in range(0, len(entry_ids), FEW_ENTRIES):
        some = kept.filter(pk__in=entry_ids[first : first + FEW_ENTRIES])
        # Each as it is now, under its lock: it may be edited, moved or forgotten meanwhile.
        with transaction.atomic():
            lock_rows(some)
            if entries := list(some):
                index_entries(user_id, entries)
    seal_documents(user_id=user_id)
    return SearchOwner.objects.filter(user_id=user_id).values_list("document_count", flat=True).first() or 0
