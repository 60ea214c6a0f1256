"""Finds the conversations that hold copies of what is forgotten: where it was recalled, returned by a tool, or is being
read at this moment."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from chatapp.context.models import RequestText, SentRequest
from chatapp.context.selectors import strings_in, told_texts
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import EntrySource, MemoryEntry
from chatapp.realtime.models import Event
from chatapp.recall.analysis import vocabulary
from chatapp.runs.models import Run, ToolCall
from memory.quotes import Quotes
from memory.redaction import Forgotten
from memory.sentences import split_sentences

CITING = ("recall", "tool")
"""The events that repeat what was said elsewhere."""
LEAST_QUOTE_CHARS = 12


def entries_made_of(texts: Iterable[str], conversation_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """What the entries of these conversations say of one of these texts, and said of it before an edit: rather one
    sentence too many."""
    forgotten = Forgotten(texts, vocabulary, common=())
    rows = MemoryEntry.objects.filter(conversation__in=conversation_ids).prefetch_related("revisions")
    found: dict[UUID, list[str]] = {}
    for row in rows:
        said = [row.text, *(revision.text for revision in row.revisions.all())]
        if told := [sentence for text in said for sentence in forgotten.carried(text)]:
            found[row.pk] = told
    return found


def saying_the_same(conversation_ids: Collection[UUID]) -> set[UUID]:
    """Where an entry of these was said once more, and where what was said here is an entry already."""
    here = list(conversation_ids)
    again = EntrySource.objects.filter(entry__conversation__in=here).values_list("conversation", flat=True)
    first = MemoryEntry.objects.filter(sources__conversation__in=here, conversation__isnull=False)
    return {*again, *first.values_list("conversation", flat=True)}


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
    return [one for one in sentences if len(one) >= LEAST_QUOTE_CHARS and vocabulary.gist(one)]


def _conversations_quoting(among: QuerySet[Conversation], quotes: Iterable[str]) -> set[UUID]:
    """Where a model was sent one of these, recalled: a `recall` event lists the best of it only."""
    wanted = Quotes(quotes)
    rows = RequestText.objects.filter(conversation__in=among, source="recall")
    return {row.conversation_id for row, text in told_texts(rows) if wanted.are_in(text)}


def _conversations_calling(
    among: QuerySet[Conversation], ids: Iterable[UUID], quotes: Iterable[str]
) -> set[UUID]:
    """Where a tool was asked for one of these, or returned it: a `tool` event holds the beginning of that only."""
    marks = Quotes([*map(str, ids), *quotes])
    calls = ToolCall.objects.filter(run__conversation__in=among)
    found: set[UUID] = set()
    for home, arguments, result in calls.values_list("run__conversation", "arguments", "result").iterator():
        if home not in found:
            text = "\n".join(part.get("text", "") for part in result)
            if marks.are_in(text) or marks.are_in(_asked(arguments)):
                found.add(home)
    return found


def _asked(arguments: str) -> str:
    """What a model wrote into a call, as it is meant; not every model's is JSON."""
    try:
        return "\n".join(strings_in(json.loads(arguments, object_pairs_hook=list)))
    except (ValueError, RecursionError):
        return arguments


def _conversations_told(
    among: QuerySet[Conversation], ids: Iterable[UUID], texts: Iterable[str]
) -> set[UUID]:
    whole = (text.strip() for text in texts)
    marks = Quotes([*map(str, ids), *(text for text in whole if len(text) >= LEAST_QUOTE_CHARS)])
    rows = Event.objects.filter(conversation__in=among, type__in=CITING)
    found: set[UUID] = set()
    for conversation_id, payload in rows.values_list("conversation_id", "payload").iterator():
        if conversation_id not in found and marks.are_in("\n".join(strings_in(payload))):
            found.add(conversation_id)
    return found
