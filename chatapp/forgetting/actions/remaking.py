"""Make anew what had other sources than what is forgotten: summaries, entries, titles. Called inside the transaction
that forgets, with the conversations and entries locked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.conversations import title_from, updated_event
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.message_values import MESSAGE_COLUMNS, messages_from_columns, text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.selectors.derived import spans_of
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations import jobs
from chatapp.realtime import event_log
from chatapp.recall.actions.indexing import index_entry, remove_entries
from chatapp.recall.analysis import vocabulary
from memory.extractive import QUICK, extract_summary
from memory.hygiene import KnownSentences
from memory.sentences import split_sentences
from memory.strategies.registry import strategy_named
from memory.summary import EARLIER_TRUNCATED
from memory.tokens import estimate_text, text_message
from memory.types import Message as MessageValue

LEAST_TOKENS = 64
FORGOTTEN = "Something it covers was forgotten."
READ_FOR_ENTRY = 200


def extract_again(rows: Sequence[Compaction], now: datetime, is_copy: Callable[[str], bool]) -> int:
    """Give each summary a text made of what is left of its span, until a worker has written it anew. Return how many.

    `rows` have what a summary was built on before it.
    """
    said: dict[UUID, str] = {}
    for row in rows:
        if row.strategy != Compaction.CLEARED:
            previous = said.get(row.previous_id) if row.previous_id else None
            if previous is None and row.previous is not None:
                previous = row.previous.summary
            row.summary = _extract(row, previous or "")
        said[row.pk] = row.summary
        row.summary_tokens = estimate_text(row.summary)
        row.reminder = row.error = ""
        row.keep_hint = "" if is_copy(row.keep_hint) else row.keep_hint
        row.fallback_reason = FORGOTTEN if row.summary else ""
        is_rewritten = row.status == Compaction.Status.DONE and _was_summarised(row)
        row.rewrite_since = now if is_rewritten else None
        row.save()
        if row.rewrite_since is not None:
            jobs.wake_worker("chatapp.compaction.tasks.rewrite_summary", str(row.pk))
    return len(rows)


def _was_summarised(row: Compaction) -> bool:
    return row.strategy != Compaction.CLEARED and strategy_named(row.strategy).writes_summaries


def _extract(row: Compaction, previous: str) -> str:
    if not row.summary and row.status != Compaction.Status.DONE:
        return ""
    before = [text_message("assistant", previous)] if previous and previous != EARLIER_TRUNCATED else []
    limit = max(LEAST_TOKENS, row.summary_tokens)
    extract = extract_summary([*before, *_sample(row)], limit, QUICK)
    for speaker in ("User", "Assistant", "Tool"):  # as the summary before named them
        extract = extract.replace(f"Assistant: {speaker}: ", f"{speaker}: ")
    return extract or EARLIER_TRUNCATED


def _sample(row: Compaction) -> list[MessageValue]:
    """As many messages of the span as an extract reads, the newest half of them and others evenly from before."""
    span = visible_messages(row.branch, row.first_position - 1).filter(position__lte=row.last_position)
    positions = list(span.exclude(parts=[]).order_by("position").values_list("position", flat=True))
    half = QUICK.messages // 2
    older, newest = positions[:-half], positions[-half:]
    chosen = [*older[:: max(1, len(older) // half)][:half], *newest]
    columns = span.filter(position__in=chosen).order_by("position").values_list(*MESSAGE_COLUMNS)
    return messages_from_columns(list(columns))


def text_left_of(entry: MemoryEntry, gone: Collection[UUID], is_copy: Callable[[str], bool]) -> str:
    """Return the sentences of an entry that its user's other messages say, in the spans it was made of, and those that
    are no copy of what is forgotten. Where nothing else was said there, only what its user wrote stays of these."""
    left = [
        row
        for span in spans_of(entry)
        for row in span.filter(role=Message.Role.USER)
        .exclude(pk__in=gone)
        .exclude(parts=[])
        .order_by("-position")[:READ_FOR_ENTRY]
    ]
    known = KnownSentences(vocabulary, (("", text_of(row.parts)) for row in left))
    barred = tombstones_of(entry.user_id)
    may_stay = bool(left) or entry.author == MemoryEntry.Author.USER
    kept = [
        sentence
        for sentence in split_sentences(entry.text)
        if not barred.cover(sentence)
        and (known.find(sentence) is not None or (may_stay and not is_copy(sentence)))
    ]
    return "".join(kept).strip()


def change_entry(entry: MemoryEntry, text: str) -> None:
    """Say what is left, or go where that is nothing. What it said before goes in either case."""
    if not text.strip():
        remove_entries(entry.user_id, [entry.pk])
        entry.delete()
        return
    entry.revisions.all().delete()
    entry.text = text
    entry.revision += 1
    entry.consolidated_at = None
    entry.save(update_fields=["text", "revision", "consolidated_at", "updated_at"])
    if entry.state == MemoryEntry.State.KEPT:
        index_entry(entry)


def retitle(conversation: Conversation, now: datetime, is_copy: Callable[[str], bool]) -> None:
    """Of a conversation whose title or hooks' notes tell of what is forgotten: what its first message left says."""
    waiting = conversation.hook_state.get("waiting", [])
    left = [note for note in waiting if not is_copy(" ".join(map(str, note.values())))]
    is_named_after = is_copy(conversation.title)
    if not is_named_after and len(left) == len(waiting):
        return
    conversation.hook_state = {**conversation.hook_state, "waiting": left}
    if is_named_after:
        said = conversation.messages.filter(role=Message.Role.USER).exclude(parts=[]).order_by("position")
        first = text_of(parts) if (parts := said.values_list("parts", flat=True).first()) else ""
        conversation.title = "" if is_copy(first) else title_from(first)
    conversation.save(update_fields=["title", "hook_state"])
    event_log.append(conversation, updated_event(conversation, now))
