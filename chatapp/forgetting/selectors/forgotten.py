"""Reads what was forgotten, and what of it could still be said: receipts, proposals, tombstones, sources."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db.models import Exists, OuterRef, Q, QuerySet

from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.files.models import Offload
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.access import parse_id
from chatapp.operations.errors import NotFound
from chatapp.recall.analysis import hash_term, vocabulary
from chatapp.recall.index_format import COLUMNS, read_postings, unpack_columns
from chatapp.recall.models import SearchBlock, SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.selectors.user_index import open_index
from memory.redaction import Forgotten
from memory.sentences import split_sentences

LOOKED_AT = 5_000
"""So many messages of a conversation are looked through for what says it again."""
TERMS_PER_QUERY = 900
DOCUMENTS_PER_WORD = 20
"""So many of the texts that hold a word are looked at for whether it is said elsewhere."""


def accessible_receipts(
    user: User, *, before: tuple[datetime, UUID] | None, limit: int
) -> list[ForgetReceipt]:
    """Newest first; `before` is the last of the page ahead."""
    rows = ForgetReceipt.objects.filter(user=user)
    if before is not None:
        at, receipt_id = before
        rows = rows.filter(Q(at__lt=at) | Q(at=at, pk__lt=receipt_id))
    return list(rows.order_by("-at", "-pk")[:limit])


def accessible_proposal(user: User, proposal_id: str) -> ForgetProposal:
    proposal = (
        ForgetProposal.objects.filter(user=user, pk=parse_id(proposal_id)).select_related("receipt").first()
    )
    if proposal is None:
        raise NotFound
    return proposal


def messages_of_day(user: User, start: datetime, end: datetime) -> list[UUID]:
    """What was said then. An answer is of the day it was asked for, with all its calls and however late it ends, and of
    its question's, where that is another one."""
    said = Message.objects.filter(conversation__user=user)
    is_asked = Q(run__created_at__gte=start, run__created_at__lt=end)
    is_asked |= Q(run__question__created_at__gte=start, run__question__created_at__lt=end)
    # Without a run: of users and of imports. What belongs to an answer goes with it.
    is_said = Q(created_at__gte=start, created_at__lt=end, run=None)
    is_alone = Q(role=Message.Role.USER) | Q(parent__run=None)
    is_empty = Q(parts=[], forgotten_at__isnull=False)
    return list(said.filter(is_asked | (is_said & is_alone)).exclude(is_empty).values_list("pk", flat=True))


def said_in(entry: MemoryEntry) -> list[Message]:
    """The messages of all spans that say it, on whatever branch; none of a conversation that is gone."""
    spans = [(entry.conversation_id, entry.first_message_id, entry.last_message_id)]
    spans += entry.sources.values_list("conversation_id", "first_message_id", "last_message_id")
    found = {row.pk: row for span in spans for row in _span(*span)}
    return sorted(found.values(), key=lambda row: (row.created_at, row.position, row.pk))


def _span(conversation_id: UUID | None, first_id: UUID | None, last_id: UUID | None) -> list[Message]:
    ends = Message.objects.filter(pk__in=[first_id, last_id], conversation=conversation_id)
    positions = list(ends.values_list("position", flat=True))
    if conversation_id is None or not positions:
        return []
    rows = Message.objects.filter(
        conversation=conversation_id, position__gte=min(positions), position__lte=max(positions)
    )
    return list(rows)


def words_said_elsewhere(
    user_id: UUID,
    conversation_ids: Collection[UUID],
    gone: Collection[UUID],
    said: Forgotten,
    *,
    since: datetime,
) -> set[str]:
    """The telling words of what cannot come from what is forgotten: of what the user says besides, and of all that
    anybody said before `since`, when it was said first. Sentences that say it again are passed over."""
    independent = Q(role=Message.Role.USER) | Q(created_at__lt=since)
    rows = Message.objects.filter(independent, conversation__in=conversation_ids).exclude(pk__in=gone)
    words: set[str] = set()
    for parts in rows.values_list("parts", flat=True).iterator():
        words |= vocabulary.telling_words(said.redact(message_values.text_of(parts)))
    for found in open_index(user_id).containing(said.telling_words - words, DOCUMENTS_PER_WORD):
        is_independent = found.role == Message.Role.USER or found.said_at < since
        if is_independent and not {found.message_id, found.entry_id} & set(gone):
            words |= vocabulary.telling_words(said.redact(found.text))
    return words


def said_besides(
    user_id: UUID,
    conversation_ids: Collection[UUID],
    gone: Collection[UUID],
    words: Collection[str],
    *,
    since: datetime,
) -> list[str]:
    """What the user says apart from what goes, or memory had before `since`: there all of it, elsewhere what has one
    of these words."""
    messages = Message.objects.filter(role=Message.Role.USER, conversation__in=conversation_ids)
    entries = MemoryEntry.objects.filter(conversation__in=conversation_ids, created_at__lt=since)
    said = [
        message_values.text_of(parts)
        for parts in messages.exclude(pk__in=gone).values_list("parts", flat=True)
    ]
    said += entries.exclude(pk__in=gone).values_list("text", flat=True)
    for found in open_index(user_id).containing(words, DOCUMENTS_PER_WORD):
        is_known = found.role == Message.Role.USER or (found.entry_id and found.said_at < since)
        if is_known and not {found.message_id, found.entry_id} & set(gone):
            said.append(found.text)
    return said


def said_with(user_id: UUID, words: Collection[str]) -> list[str]:
    """What the user said, or has in memory, with one of these words."""
    found = open_index(user_id).containing(words, DOCUMENTS_PER_WORD)
    return [one.text for one in found if one.role != Message.Role.ASSISTANT]


def conversations_of(user_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.filter(user=user_id)


def offloading_conversations(user_id: UUID) -> QuerySet[Conversation]:
    """Those that have something offloaded."""
    return conversations_of(user_id).filter(Exists(Offload.objects.filter(conversation=OuterRef("pk"))))


def sentences_of_answers(user_id: UUID, except_in: Collection[UUID]) -> set[str]:
    """What the newest answers of the user's other conversations say."""
    rows = Message.objects.filter(conversation__user=user_id, role=Message.Role.ASSISTANT)
    newest = rows.exclude(conversation__in=except_in).order_by("-created_at", "-pk")
    said = newest.values_list("parts", flat=True)[:LOOKED_AT].iterator()
    return {sentence.strip() for parts in said for sentence in split_sentences(message_values.text_of(parts))}


def recitations(conversation_ids: Collection[UUID], forgotten: Forgotten, limit: int) -> list[UUID]:
    """The newest messages there that say something of it again, oldest first."""
    rows = (
        Message.objects.filter(conversation__in=conversation_ids)
        .exclude(parts=[])
        .order_by("-created_at", "-position", "-pk")
    )
    said = rows.values_list("pk", "parts")[:LOOKED_AT].iterator()
    found = [pk for pk, parts in said if forgotten.carried(message_values.text_of(parts))]
    return found[:limit][::-1]


def words_still_said(user_id: UUID, words: Collection[str]) -> set[str]:
    """Those that the user's search index still has, apart from conversations that are being deleted."""
    hashed = {hash_term(word): word for word in words}
    owner = SearchOwner.objects.filter(user_id=user_id).first()
    if owner is None or not hashed:
        return set()
    found: set[int] = set()
    live = _live_documents(owner)
    for start in range(0, len(hashed), TERMS_PER_QUERY):
        some = list(hashed)[start : start + TERMS_PER_QUERY]
        postings = SearchPosting.objects.filter(owner=owner, term__in=some)
        for term, block, entries in postings.values_list("term", "block", "entries"):
            if live[block][read_postings(entries)["offset"]].any():
                found.add(term)
    tail = SearchDocument.objects.filter(owner=owner, ordinal__gte=owner.sealed_ordinal)
    is_deleted = Q(
        kind=SearchDocument.Kind.MESSAGE, conversation__isnull=False, conversation__user__isnull=True
    )
    for terms in tail.filter(~is_deleted).values_list("terms", flat=True):
        found |= hashed.keys() & set(array("q", bytes(terms)))
    return {hashed[term] for term in found}


def _live_documents(owner: SearchOwner) -> dict[int, npt.NDArray[np.bool_]]:
    """By block, which of its places hold a document that can be found."""
    rows = SearchBlock.objects.filter(owner=owner).values_list("number", "columns")
    return {number: unpack_columns(np.frombuffer(columns, COLUMNS)).live for number, columns in rows}


def proposal_items(user: User, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with what it says now; what is gone or was changed meanwhile is left out."""
    wanted = list(items)
    ids = [parse_id(item["id"]) for item in wanted if item["kind"] == "message"]
    messages = Message.objects.filter(conversation__user=user).in_bulk(ids)
    shapes = {str(pk): _message_item(row) for pk, row in messages.items() if row.parts}
    entries = _unchanged_entries(user, wanted)
    for item in wanted:
        if item["kind"] == "entry" and item["id"] in entries:
            shapes[item["id"]] = _entry_item(entries[item["id"]], _lines(entries[item["id"]], item))
    return [shapes[item["id"]] for item in wanted if item["id"] in shapes]


def proposed_lines(user: User, items: Iterable[dict[str, Any]]) -> dict[UUID, list[str]]:
    """Of each entry that was not changed since, the sentences that were proposed."""
    wanted = [item for item in items if item["kind"] == "entry"]
    entries = _unchanged_entries(user, wanted)
    return {
        entries[item["id"]].pk: _lines(entries[item["id"]], item) for item in wanted if item["id"] in entries
    }


def _unchanged_entries(user: User, items: Iterable[dict[str, Any]]) -> dict[str, MemoryEntry]:
    revisions = {item["id"]: item["revision"] for item in items if item["kind"] == "entry"}
    found = MemoryEntry.objects.filter(user=user).in_bulk([parse_id(one) for one in revisions])
    return {str(pk): row for pk, row in found.items() if row.revision == revisions[str(pk)]}


def _lines(entry: MemoryEntry, item: dict[str, Any]) -> list[str]:
    sentences = split_sentences(entry.text)
    return [sentences[number].strip() for number in item["sentences"] if number < len(sentences)]


PREVIEW_CHARS = 240


def _message_item(row: Message) -> dict[str, Any]:
    said = message_values.text_of(row.parts)
    return _item("message", row.pk, said, row.created_at, row.conversation_id) | {"role": row.role}


def _entry_item(row: MemoryEntry, lines: Sequence[str]) -> dict[str, Any]:
    said = " ".join(lines)
    return _item("entry", row.pk, said, row.created_at, row.conversation_id) | {"day": row.day.isoformat()}


def _item(kind: str, pk: UUID, text: str, at: datetime, conversation_id: UUID | None) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": str(pk),
        "preview": text[:PREVIEW_CHARS],
        "created_at": at.isoformat().replace("+00:00", "Z"),
        "conversation_id": str(conversation_id) if conversation_id else None,
    }
