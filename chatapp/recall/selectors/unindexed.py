"""Creates search documents from messages and entries, and finds messages that are not indexed yet.

The worker stores the documents (`actions.indexing`). Until then, a search scores them from memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from chatapp.conversations import message_values
from chatapp.conversations.models import IS_BEHIND, Conversation, Message
from chatapp.operations.database.statements import as_key, as_stored, columns_of, execute, read_models
from chatapp.recall.analysis import PackedTerms, pack_terms
from chatapp.recall.models import SearchDocument, SearchOwner
from memory.recall.passages import split_passages

BATCH = 80
BATCH_CHARS = 50_000
"""Messages and characters indexed per transaction at most, because others wait for the lock."""
# Before that, the worker that was woken has probably not started yet.
PICKED_UP_AFTER = timedelta(seconds=10)
LOOKED_BACK = timedelta(days=1)
CONVERSATIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class NewDocument:
    kind: int
    source_id: UUID
    said_at: datetime
    start: int
    end: int
    packed: PackedTerms
    conversation_id: UUID | None

    def stored(self) -> StoredDocument:
        """Return the document as raw column values, computed before the transaction that stores it."""
        return StoredDocument(
            int(self.kind),
            as_stored(self.source_id),
            self.conversation_id and as_stored(self.conversation_id),
            self.start,
            self.end,
            as_stored(self.said_at),
            self.packed.length,
            self.packed.terms,
            self.packed.counts,
        )


class StoredDocument(NamedTuple):
    """Raw column values of `SearchDocument`, except its place in an index."""

    kind: int
    source_id: UUID | str
    conversation_id: UUID | str | None
    start: int
    end: int
    said_at: datetime | str
    length: int
    terms: bytes
    counts: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """The next messages of a conversation to index, from position `start` on, and their documents. More may follow a
    full batch."""

    conversation_id: UUID
    user_id: UUID
    start: int
    messages: list[Message]
    documents: list[StoredDocument]
    is_full: bool = False

    @property
    def end(self) -> int:
        """Return the position after the last message."""
        return self.messages[-1].position + 1


@dataclass(frozen=True, slots=True)
class UnindexedSpan:
    """A conversation whose messages from position `start` on, below `end`, are not indexed yet."""

    conversation_id: UUID
    start: int
    last_ordinal: int
    end: int


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """The columns of an unindexed message that a search needs."""

    id: UUID
    conversation_id: UUID
    branch_id: UUID
    position: int
    role: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class UnindexedDocument:
    """A document as it would be stored, and the message that it is a piece of."""

    ordinal: int
    previous: int
    document: NewDocument
    message: SaidMessage


def documents_of(
    kind: int, source_id: UUID, text: str, said_at: datetime, conversation_id: UUID | None
) -> Iterator[NewDocument]:
    """Yield the documents of a text: one, or one per piece of a long text."""
    for start, end in split_passages(text):
        yield NewDocument(kind, source_id, said_at, start, end, pack_terms(text[start:end]), conversation_id)


def message_documents(row: Message) -> Iterator[NewDocument]:
    text = message_values.text_of(row.parts)
    return _documents(row.pk, row.conversation_id, row.role, text, row.created_at)


def _documents(
    message_id: UUID, conversation_id: UUID, role: str, text: str, said_at: datetime
) -> Iterator[NewDocument]:
    if role in (Message.Role.USER, Message.Role.ASSISTANT):
        yield from documents_of(int(SearchDocument.Kind.MESSAGE), message_id, text, said_at, conversation_id)


_BATCH = """
SELECT {message}, conversation.user_id, conversation.indexed_below
FROM chatapp_conversation AS conversation
JOIN chatapp_message AS message
    ON message.conversation_id = conversation.id AND message.position >= conversation.indexed_below
WHERE conversation.id = %s AND conversation.user_id IS NOT NULL AND NOT conversation.temporary
ORDER BY message.position LIMIT %s
"""


def next_batch(conversation_id: UUID, limit: int = BATCH) -> Batch | None:
    """Return the next messages to index, before any answer that is still streaming; None if there are none, or if the
    conversation is temporary or has no user."""
    batch, chars = None, 0
    sql = _BATCH.format(message=columns_of(Message, "message"))
    for row, user_id, start in read_models([Message], sql, conversation_id, limit):
        if row.status == Message.Status.STREAMING or chars >= BATCH_CHARS:
            break
        batch = batch or Batch(conversation_id, as_key(user_id), start, [], [])
        new = list(message_documents(row))
        batch.messages.append(row)
        batch.documents.extend(document.stored() for document in new)
        chars += new[-1].end if new else 0
    if batch and (len(batch.messages) == limit or chars >= BATCH_CHARS):
        return replace(batch, is_full=True)
    return batch


def overlooked_conversations(now: datetime, limit: int = 20) -> list[UUID]:
    """Return conversations of all users whose worker was not woken or died, round-robin by user."""
    lately = (now - LOOKED_BACK, now - PICKED_UP_AFTER)
    rows = Conversation.objects.filter(IS_BEHIND)
    rows = rows.filter(Q(last_activity_at__range=lately) | Q(kept_since__range=lately))
    turn = Window(RowNumber(), partition_by="user", order_by="last_activity_at")
    fair = rows.annotate(turn=turn).order_by("turn", "last_activity_at", "pk")
    return list(fair.values_list("pk", flat=True)[:limit])


def has_more_to_index(conversation_id: UUID) -> bool:
    """Return whether finished messages are not indexed yet."""
    return next_batch(conversation_id, limit=1) is not None


def owner_of(conversation_id: str) -> UUID | None:
    return Conversation.objects.filter(pk=conversation_id).values_list("user_id", flat=True).first()


def users_without_vectors(model: str) -> list[UUID]:
    """Return some users with documents that have no vectors of this model; empty if no model is configured."""
    if not model:
        return []
    behind = ~Q(vector_model=model) | Q(embedded_ordinal__lt=F("next_ordinal"))
    owners = SearchOwner.objects.filter(behind, next_ordinal__gt=0, user__isnull=False)
    return list(owners.order_by("pk").values_list("user_id", flat=True)[:20])


_BEHIND = """
SELECT id, indexed_below, last_ordinal, next_position FROM chatapp_conversation
WHERE user_id = %s AND NOT temporary AND indexed_below < next_position
ORDER BY last_activity_at DESC, id DESC LIMIT %s
"""


def unindexed_conversations(user_id: UUID) -> list[UnindexedSpan]:
    """Return the user's conversations that are not fully indexed, the most recently used first."""
    rows = execute(_BEHIND, user_id, CONVERSATIONS_AT_ONCE).fetchall()
    return [UnindexedSpan(as_key(key), start, last_ordinal, end) for key, start, last_ordinal, end in rows]


_UNINDEXED = """
SELECT message.id, message.conversation_id, message.branch_id, message.position, message.role,
    CAST(message.parts AS text), CAST(message.created_at AS text)
FROM (VALUES {wanted}) wanted
CROSS JOIN chatapp_message message
WHERE message.conversation_id = wanted.column1 AND message.position >= wanted.column2
    AND message.position < wanted.column3
    AND message.position < COALESCE((
        SELECT min(position) FROM chatapp_message written
        WHERE written.conversation_id = wanted.column1 AND written.position >= wanted.column2
            AND written.position < wanted.column3 AND written.status = 'streaming'
    ), wanted.column3)
"""
"""Only messages before an answer that is still streaming."""


def unindexed_documents(
    behind: Sequence[UnindexedSpan], first_ordinal: int, limit: int
) -> list[UnindexedDocument]:
    """Return the documents of at most `limit` messages, as they would be stored from `first_ordinal` on. Use one
    statement for all conversations."""
    found: list[UnindexedDocument] = []
    said = _unindexed_messages(behind, limit) if behind else {}
    for conversation in behind:
        previous = conversation.last_ordinal
        for message in said.get(conversation.conversation_id, ()):
            for document in _documents(
                message.id, message.conversation_id, message.role, message.text, message.said_at
            ):
                ordinal = first_ordinal + len(found)
                found.append(UnindexedDocument(ordinal, previous, document, message))
                previous = ordinal
    return found


def _unindexed_messages(behind: Sequence[UnindexedSpan], limit: int) -> dict[UUID, list[SaidMessage]]:
    """Return the messages by conversation, ordered by position."""
    wanted: list[UUID | int] = []
    for conversation in behind:
        if limit <= 0:
            break
        # Positions have no gaps, so that their difference counts messages.
        end = min(conversation.end, conversation.start + limit)
        wanted += [conversation.conversation_id, conversation.start, end]
        limit -= end - conversation.start
    row = "(%s::uuid, %s::bigint, %s::bigint)" if connection.vendor == "postgresql" else "(%s, %s, %s)"
    sql = _UNINDEXED.format(wanted=", ".join([row] * (len(wanted) // 3)))
    messages = sorted(map(_read_said, execute(sql, *wanted).fetchall()), key=_place)
    return {key: list(said) for key, said in groupby(messages, key=lambda message: message.conversation_id)}


def _place(message: SaidMessage) -> tuple[UUID, int]:
    return message.conversation_id, message.position


def _read_said(row: Sequence[Any]) -> SaidMessage:
    message_id, conversation_id, branch_id, position, role, parts, said_at = row
    return SaidMessage(
        as_key(message_id),
        as_key(conversation_id),
        as_key(branch_id),
        position,
        role,
        message_values.text_of(json.loads(parts)),
        message_values.read_moment(said_at),
    )
