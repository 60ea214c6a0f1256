"""Reads what was forgotten, and what of it could still be said: receipts, proposals, tombstones, sources."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac

from chatapp import mapping
from chatapp.errors import NotFound
from chatapp.models import (
    Conversation,
    Event,
    ForgetClock,
    ForgetProposal,
    ForgetReceipt,
    MemoryEntry,
    Message,
    RequestText,
    Run,
    ScopeClock,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SentRequest,
    Tombstone,
    ToolCall,
    User,
)
from chatapp.search_index import hash_term, vocabulary
from chatapp.selectors.access import parse_id
from chatapp.selectors.requests import told_texts
from chatapp.selectors.search import open_index
from memory.redaction import Forgotten
from memory.sentences import split_sentences
from memory.tombstones import Fingerprint, Fingerprinter, Tombstones

SALT = "palimpsest.tombstones"
CITING = ("recall", "tool")
"""The events that repeat what was said elsewhere."""
LEAST_QUOTE_CHARS = 12
LOOKED_AT = 5_000
"""So many messages of a conversation are looked through for what says it again."""
TERMS_PER_QUERY = 900
DOCUMENTS_PER_WORD = 20
"""So many of the texts that hold a word are looked at for whether it is said elsewhere."""


def fingerprinter_for(user_id: UUID) -> Fingerprinter:
    """With a key that is not in the database: its rows alone do not tell what was forgotten."""
    key = salted_hmac(SALT, str(user_id), algorithm="sha256").digest()
    return Fingerprinter(key, vocabulary)


def tombstones_of(user_id: UUID) -> Tombstones:
    rows = Tombstone.objects.filter(user_id=user_id).values_list("whole", "words")
    found = (Fingerprint(whole, tuple(array("q", bytes(words)))) for whole, words in rows)
    return Tombstones(found, fingerprinter_for(user_id))


def liftable_tombstones(user_id: UUID) -> dict[int, datetime]:
    """What stands for each, and since when it does: those that are not for good."""
    rows = Tombstone.objects.filter(user_id=user_id, for_good=False)
    return dict(rows.values_list("whole", "created_at"))


def forgotten_count_of(conversation: Conversation) -> int:
    """How often something that may be known in it was forgotten."""
    own = ForgetClock.objects.filter(user=conversation.user_id).values_list("count", flat=True).first() or 0
    if conversation.shared_in is None:
        return own
    shared = ScopeClock.objects.filter(pk=conversation.shared_in).values_list("count", flat=True).first()
    return own + (shared or 0)


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
    rows = Message.objects.filter(conversation__user=user, created_at__gte=start, created_at__lt=end)
    return list(rows.values_list("pk", flat=True))


def span_of(entry: MemoryEntry) -> list[Message]:
    """The messages it was made of, on whatever branch; none where the conversation is gone."""
    ends = Message.objects.filter(pk__in=[entry.first_message_id, entry.last_message_id])
    positions = list(ends.filter(conversation=entry.conversation_id).values_list("position", flat=True))
    if entry.conversation_id is None or not positions:
        return []
    rows = Message.objects.filter(
        conversation=entry.conversation_id, position__gte=min(positions), position__lte=max(positions)
    )
    return list(rows.order_by("position"))


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
        words |= vocabulary.telling_words(said.redact(mapping.text_of(parts)))
    for found in open_index(user_id).holding(said.telling_words - words, DOCUMENTS_PER_WORD):
        is_independent = found.role == Message.Role.USER or found.said_at < since
        if is_independent and not {found.message_id, found.entry_id} & set(gone):
            words |= vocabulary.telling_words(said.redact(found.text))
    return words


def said_with(user_id: UUID, words: Collection[str]) -> list[str]:
    """What the user said, or has in memory, with one of these words."""
    found = open_index(user_id).holding(words, DOCUMENTS_PER_WORD)
    return [one.text for one in found if one.role != Message.Role.ASSISTANT]


def conversations_of(user_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.filter(user=user_id)


def reading_conversations(among: QuerySet[Conversation]) -> set[UUID]:
    """Where a run may hold what no message or event tells of yet: it recalls, a tool of it runs, or has returned what
    waits for the other calls of its step."""
    runs = Run.objects.filter(conversation__in=among, status=Run.Status.RUNNING)
    may_have_read = Q(state=ToolCall.State.RUNNING) | Q(is_told=False, finished_at__isnull=False)
    calling = ToolCall.objects.filter(may_have_read, run=OuterRef("pk"))
    told = Event.objects.filter(run=OuterRef("pk"), type="context")
    kept = SentRequest.objects.filter(run=OuterRef("pk"))
    has_told_all = Exists(told) & Exists(kept) & ~Exists(calling)
    return set(runs.exclude(has_told_all).values_list("conversation_id", flat=True))


def citing_conversations(
    among: QuerySet[Conversation], ids: Iterable[UUID], texts: Iterable[str]
) -> set[UUID]:
    """Those where one of these messages, entries or conversations was recalled, a tool was asked for one of these
    texts or returned it, or a run may be reading them at this moment."""
    ids, texts = list(ids), list(texts)
    # First of all: a run that tells meanwhile what it read is found by what it told.
    reading = reading_conversations(among)
    quotes = _quotes(texts)
    calling = _conversations_calling(among, ids, quotes)
    return reading | calling | _conversations_quoting(among, quotes) | _conversations_told(among, ids, texts)


def _quotes(texts: Iterable[str]) -> list[str]:
    """The sentences that tell where they stand that one of these was quoted."""
    sentences = {sentence.strip() for text in texts for sentence in split_sentences(text)}
    return [sentence for sentence in sentences if len(sentence) >= LEAST_QUOTE_CHARS]


def _conversations_quoting(among: QuerySet[Conversation], quotes: Collection[str]) -> set[UUID]:
    """Where a model was sent one of these, recalled: a `recall` event lists the best of it only."""
    rows = RequestText.objects.filter(conversation__in=among, source="recall")
    return {row.conversation_id for row, text in told_texts(rows) if any(quote in text for quote in quotes)}


def _conversations_calling(
    among: QuerySet[Conversation], ids: Iterable[UUID], quotes: Iterable[str]
) -> set[UUID]:
    """Where a tool was asked for one of these, or returned it: a `tool` event holds the beginning of that only."""
    returned = [*map(str, ids), *quotes]
    asked = [_in_json(mark) for mark in returned]
    calls = ToolCall.objects.filter(run__conversation__in=among)
    found: set[UUID] = set()
    for home, arguments, result in calls.values_list("run__conversation", "arguments", "result").iterator():
        if home not in found:
            text = "\n".join(part.get("text", "") for part in result)
            if any(mark in text for mark in returned) or any(mark in arguments for mark in asked):
                found.add(home)
    return found


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _conversations_told(
    among: QuerySet[Conversation], ids: Iterable[UUID], texts: Iterable[str]
) -> set[UUID]:
    marks = {str(one) for one in ids} | {
        _in_json(text.strip()) for text in texts if len(text.strip()) >= LEAST_QUOTE_CHARS
    }
    rows = Event.objects.filter(conversation__in=among, type__in=CITING)
    found: set[UUID] = set()
    for conversation_id, payload in rows.values_list("conversation_id", "payload").iterator():
        if conversation_id not in found:
            raw = json.dumps(payload, ensure_ascii=False)
            if any(mark in raw for mark in marks):
                found.add(conversation_id)
    return found


def said_and_where(
    user: User, message_ids: Collection[UUID], entry_ids: Collection[UUID]
) -> tuple[list[str], set[UUID]]:
    """What they say, and the conversations that are theirs or cite them."""
    messages = Message.objects.filter(conversation__user=user, pk__in=message_ids)
    entries = MemoryEntry.objects.filter(user=user, pk__in=entry_ids)
    texts = [mapping.text_of(row.parts) for row in messages] + [row.text for row in entries]
    homes = {row.conversation_id for row in messages} | {
        row.conversation_id for row in entries if row.conversation_id
    }
    return texts, homes | citing_conversations(conversations_of(user.pk), [*message_ids, *entry_ids], texts)


def recitations(conversation_ids: Collection[UUID], forgotten: Forgotten, limit: int) -> list[UUID]:
    """The newest messages there that say something of it again, oldest first."""
    rows = (
        Message.objects.filter(conversation__in=conversation_ids)
        .exclude(parts=[])
        .order_by("-created_at", "-position")
    )
    said = rows.values_list("pk", "parts")[:LOOKED_AT].iterator()
    found = [pk for pk, parts in said if forgotten.carried(mapping.text_of(parts))]
    return found[:limit][::-1]


def words_still_said(user_id: UUID, words: Collection[str]) -> set[str]:
    """Those that the user's search index still has."""
    hashed = {hash_term(word): word for word in words}
    owner = SearchOwner.objects.filter(user_id=user_id).first()
    if owner is None or not hashed:
        return set()
    found: set[int] = set()
    for start in range(0, len(hashed), TERMS_PER_QUERY):
        some = list(hashed)[start : start + TERMS_PER_QUERY]
        found |= set(SearchPosting.objects.filter(owner=owner, term__in=some).values_list("term", flat=True))
    tail = SearchDocument.objects.filter(owner=owner, ordinal__gte=owner.sealed_ordinal)
    for terms in tail.values_list("terms", flat=True):
        found |= hashed.keys() & set(array("q", bytes(terms)))
    return {hashed[term] for term in found}


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
    said = mapping.text_of(row.parts)
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


def conversation_ids_of(user: User) -> list[UUID]:
    return list(Conversation.objects.filter(user=user).order_by("pk").values_list("pk", flat=True))
