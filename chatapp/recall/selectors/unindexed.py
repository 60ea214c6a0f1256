"""Makes search documents of messages and entries, and finds what is not indexed yet.

The worker stores the documents (`actions.indexing`). A search that comes earlier scores them from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.recall.analysis import PackedTerms, pack_terms
from chatapp.recall.index_format import NO_ORDINAL
from chatapp.recall.models import SearchCursor, SearchDocument, SearchOwner
from memory.passages import split_passages

BATCH = 200
BATCH_CHARS = 100_000
"""At most so many messages and characters are indexed in one transaction: others wait for the lock."""
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

    def row(self, ordinal: int, previous: int) -> SearchDocument:
        """Return the row, unsaved and without its owner."""
        return SearchDocument(
            ordinal=ordinal,
            previous=previous,
            kind=self.kind,
            source_id=self.source_id,
            conversation_id=self.conversation_id,
            start=self.start,
            end=self.end,
            said_at=self.said_at,
            length=self.packed.length,
            terms=self.packed.terms,
            counts=self.packed.counts,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """The documents of a conversation after `after_position`, up to `position`."""

    after_position: int
    position: int
    documents: list[NewDocument]


@dataclass(frozen=True, slots=True)
class Behind:
    """A conversation whose messages after `position` are not indexed yet."""

    conversation_id: UUID
    position: int
    last_ordinal: int
    message_count: int


def documents_of(
    kind: int, source_id: UUID, text: str, said_at: datetime, conversation_id: UUID | None
) -> Iterator[NewDocument]:
    """Yield the documents of a text: one, or one per piece of a long text."""
    for start, end in split_passages(text):
        yield NewDocument(kind, source_id, said_at, start, end, pack_terms(text[start:end]), conversation_id)


def message_documents(row: Message) -> Iterator[NewDocument]:
    if row.role in (Message.Role.USER, Message.Role.ASSISTANT):
        kind = SearchDocument.Kind.MESSAGE
        text = message_values.text_of(row.parts)
        yield from documents_of(kind, row.pk, text, row.created_at, row.conversation_id)


def next_batch(conversation_id: UUID, limit: int = BATCH) -> Batch | None:
    """Return the next messages to index, up to an answer that is still being written; None where there are none."""
    cursor = SearchCursor.objects.filter(conversation_id=conversation_id).first()
    return _batch(conversation_id, cursor.position if cursor else -1, limit, BATCH_CHARS)


def _batch(conversation_id: UUID, after: int, limit: int, most_chars: float = inf) -> Batch | None:
    rows = Message.objects.filter(conversation_id=conversation_id, position__gt=after).order_by("position")
    documents: list[NewDocument] = []
    position = after
    for row in rows.only("conversation", "position", "role", "parts", "status", "created_at")[
        :limit
    ].iterator():
        if row.status == Message.Status.STREAMING:
            break
        new = list(message_documents(row))
        documents += new
        position = row.position
        most_chars -= new[-1].end if new else 0
        if most_chars <= 0:
            break
    return Batch(after, position, documents) if position > after else None


_IS_BEHIND = Q(search_cursor=None, next_position__gt=0) | Q(
    search_cursor__position__lt=F("next_position") - 1
)


def overlooked_conversations(now: datetime, limit: int = 20) -> list[UUID]:
    """Return conversations whose worker was not woken or died, of all users; each user's first before anybody's
    second."""
    rows = Conversation.objects.filter(_IS_BEHIND, temporary=False)
    rows = rows.filter(last_activity_at__gte=now - LOOKED_BACK, last_activity_at__lt=now - PICKED_UP_AFTER)
    turn = Window(RowNumber(), partition_by="user", order_by="last_activity_at")
    fair = rows.annotate(turn=turn).order_by("turn", "last_activity_at", "pk")
    return list(fair.values_list("pk", flat=True)[:limit])


def has_more_to_index(conversation_id: UUID) -> bool:
    """Return whether finished messages are not indexed yet."""
    return next_batch(conversation_id, limit=1) is not None


def owner_of(conversation_id: str) -> UUID | None:
    return Conversation.objects.filter(pk=conversation_id).values_list("user_id", flat=True).first()


def users_without_vectors(model: str, limit: int = 20) -> list[UUID]:
    """Return users with documents that have no vectors of this model; none where no model is configured."""
    if not model:
        return []
    behind = ~Q(vector_model=model) | Q(embedded_ordinal__lt=F("next_ordinal"))
    owners = SearchOwner.objects.filter(behind, next_ordinal__gt=0, user__isnull=False)
    return list(owners.order_by("pk").values_list("user_id", flat=True)[:limit])


def conversations_behind(user_id: UUID, limit: int = CONVERSATIONS_AT_ONCE) -> list[Behind]:
    """Return the user's conversations that are not fully indexed, the most recently used first."""
    rows = Conversation.objects.filter(_IS_BEHIND, user_id=user_id, temporary=False)
    columns = ("pk", "search_cursor__position", "search_cursor__last_ordinal", "next_position")
    found = []
    for conversation_id, position, last_ordinal, next_position in rows.order_by(
        "-last_activity_at", "-pk"
    ).values_list(*columns)[:limit]:
        indexed = -1 if position is None else position
        last = NO_ORDINAL if last_ordinal is None else last_ordinal
        found.append(Behind(conversation_id, indexed, last, next_position - 1 - indexed))
    return found


def unindexed_documents(behind: Sequence[Behind], first_ordinal: int, limit: int) -> list[SearchDocument]:
    """Return unsaved rows of at most `limit` messages, as they would be stored from `first_ordinal` on."""
    rows: list[SearchDocument] = []
    for conversation in behind:
        if limit <= 0:
            break
        batch = _batch(
            conversation.conversation_id, conversation.position, min(limit, conversation.message_count)
        )
        limit -= conversation.message_count
        previous = conversation.last_ordinal
        for document in batch.documents if batch else ():
            rows.append(document.row(first_ordinal + len(rows), previous))
            previous = rows[-1].ordinal
    return rows
