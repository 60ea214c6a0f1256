"""Takes what was forgotten out of everything that was made of it: summaries, entries, events, titles, tool results.

All of it is called inside the transaction that forgets, with the conversation locked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from agents.events import MessageForgotten
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import span_messages
from chatapp.context.models import RequestText
from chatapp.context.selectors import told_texts
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import jobs
from chatapp.realtime import event_log
from chatapp.realtime.models import Event
from chatapp.recall.actions.indexing import index_entry, reindex_message, remove_entries
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.models import Run, ToolCall
from memory.extractive import extract_missing
from memory.redaction import Forgotten
from memory.summary import EARLIER_TRUNCATED
from memory.tokens import estimate_parts, estimate_text
from memory.types import Message as MessageValue
from memory.types import TextPart

STOPPED = "The answer was stopped, because something it may have read was forgotten."
BEGUN_AGAIN = "Something it covers was forgotten meanwhile."
QUIET_EVENTS = ("usage", "context", "compact", "run.started")
"""They hold numbers and ids only."""
NAMES = frozenset(
    {"id", "type", "role", "status", "name", "model", "mime_type", "kind", "at", "parent", "file_id", "state"}
)
"""The fields of parts and events that no user's words are in."""


# --- What goes on at this moment -----------------------------------------------------------------------


def stop_work(conversation: Conversation, now: datetime) -> list[UUID]:
    """What answers or summarises here has read what is forgotten now: neither may write any more. The ended runs."""
    runs = list(Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE))
    ended = [
        run.pk for run in runs if interrupt_run(run_id=run.pk, fence=run.fence, now=now, message=STOPPED)
    ]
    stopped = Compaction.objects.filter(conversation=conversation, status__in=Compaction.ACTIVE).update(
        status=Compaction.Status.FAILED, error=BEGUN_AGAIN, finished_at=now, lease_expires_at=None
    )
    if stopped:
        jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(conversation.pk))
    conversation.refresh_from_db()
    return ended


# --- Messages ------------------------------------------------------------------------------------------


def empty_message(row: Message, now: datetime) -> None:
    """It keeps its place, so that positions stay gapless, and nothing else."""
    _store_parts(row, [], now)


def redact_message(row: Message, forgotten: Forgotten, now: datetime) -> bool:
    """Takes its forgotten sentences out; False where there are none."""
    return _redact_parts(row, forgotten, now, kept=("image",))


def redact_tool_results(row: Message, forgotten: Forgotten, now: datetime) -> bool:
    """Takes the forgotten sentences out of what its tools returned and its model thought: copies, not speech."""
    return _redact_parts(
        row, forgotten, now, kept=("image", "text") if row.role != Message.Role.TOOL else ("image",)
    )


def _redact_parts(row: Message, forgotten: Forgotten, now: datetime, *, kept: Collection[str]) -> bool:
    parts = [part if part["type"] in kept else _redact_tree(part, forgotten) for part in row.parts]
    if parts == row.parts:
        return False
    _store_parts(row, [part for part in parts if part["type"] != "text" or part["text"].strip()], now)
    return True


def _store_parts(row: Message, parts: list[dict[str, Any]], now: datetime) -> None:
    row.parts = parts
    row.token_estimate = estimate_parts(message_values.parts_from_json(parts)) if parts else 0
    row.request_hash = ""
    row.forgotten_at = now
    row.save(update_fields=["parts", "token_estimate", "request_hash", "forgotten_at"])
    reindex_message(row)


def redact_copies(
    conversation: Conversation, forgotten: Forgotten, ended_runs: Collection[UUID], now: datetime
) -> int:
    """What tools returned of it in another conversation, and answers that were being written; how many messages."""
    said = Message.objects.filter(
        conversation=conversation, role__in=(Message.Role.ASSISTANT, Message.Role.TOOL)
    )
    changed = [
        row
        for row in said.select_related("run")
        if (redact_message if run_of(row) in ended_runs else redact_tool_results)(row, forgotten, now)
    ]
    tell_forgotten(conversation, changed, now)
    return len(changed)


def run_of(row: Message) -> UUID | None:
    return row.run.pk if hasattr(row, "run") else None


def tell_forgotten(conversation: Conversation, rows: Iterable[Message], now: datetime) -> None:
    facts = [
        MessageForgotten(conversation_id=str(conversation.pk), at=now, message=message_shape(row))
        for row in rows
    ]
    if facts:
        event_log.append(conversation, *facts)


# --- What was made of them -----------------------------------------------------------------------------


def redact_events(
    conversation: Conversation,
    forgotten: Forgotten,
    *,
    changed: Mapping[UUID, Message],
    gone: Iterable[UUID],
) -> int:
    """How many. The log keeps its numbers; what was recalled from a source that is gone loses its item.

    A message in an event says what its row says: only those that were `changed` are others now.
    """
    ids = {str(one) for one in gone}
    rows = Event.objects.filter(conversation=conversation).exclude(type__in=QUIET_EVENTS)
    others = []
    for row in rows.iterator(chunk_size=500):
        payload = _redact_payload(row.payload, forgotten, ids)
        if payload != row.payload:
            row.payload = payload
            others.append(row)
    Event.objects.bulk_update(others, ["payload"], batch_size=200)
    return len(others)


def _redact_payload(payload: dict[str, Any], forgotten: Forgotten, gone: set[str]) -> dict[str, Any]:
    if payload["type"] == "recall":
        items = [
            item for item in payload["items"] if not gone & {str(value) for value in item["source"].values()}
        ]
        payload = {**payload, "items": items}
    redacted: dict[str, Any] = _redact_tree(payload, forgotten)
    return redacted


def _redact_tree(value: Any, forgotten: Forgotten) -> Any:
    if isinstance(value, str):
        return forgotten.redact(value)
    if isinstance(value, list):
        return [_redact_tree(item, forgotten) for item in value]
    if isinstance(value, dict):
        return {name: _redact_field(name, item, forgotten) for name, item in value.items()}
    return value


def _redact_field(name: str, value: Any, forgotten: Forgotten) -> Any:
    if name in NAMES or name.endswith("_id"):
        return value
    if name == "arguments" and isinstance(value, str):  # JSON stays JSON
        return "{}" if forgotten.carried(value) else value
    return _redact_tree(value, forgotten)


def redact_compactions(conversation: Conversation, forgotten: Forgotten) -> int:
    """How many summaries lost sentences. What those said besides is told by the messages that are left."""
    changed = 0
    for row in Compaction.objects.filter(conversation=conversation).select_related("branch"):
        before = (row.summary, row.reminder, row.keep_hint, row.error, row.fallback_reason)
        row.summary = _redact_summary(row, forgotten)
        row.reminder = forgotten.redact(row.reminder)
        row.keep_hint = forgotten.redact(row.keep_hint)
        row.error = forgotten.redact(row.error)
        row.fallback_reason = forgotten.redact(row.fallback_reason)
        if before != (row.summary, row.reminder, row.keep_hint, row.error, row.fallback_reason):
            row.summary_tokens = estimate_text(row.summary)
            row.save()
            changed += 1
    return changed


def _redact_summary(row: Compaction, forgotten: Forgotten) -> str:
    left = forgotten.redact(row.summary)
    if left == row.summary or row.strategy == Compaction.CLEARED:
        return row.summary
    room = estimate_text(row.summary) - estimate_text(left)
    missing = extract_missing(_left_over(row, forgotten), "", left, room)
    return f"{left}\n\n{missing}".strip() or EARLIER_TRUNCATED


def _left_over(row: Compaction, forgotten: Forgotten) -> Sequence[MessageValue]:
    """The messages of the span as they may still be quoted."""
    return [
        replace(message, parts=(TextPart(text),))
        for message in span_messages(row.branch, row.first_position, row.last_position)
        if (text := forgotten.redact(message.text)).strip()
    ]


def redact_entries(conversation: Conversation, forgotten: Forgotten) -> tuple[set[date], int]:
    """The days whose files are behind now, and how many entries changed. One that says nothing any more goes."""
    days: set[date] = set()
    changed = 0
    for entry in MemoryEntry.objects.select_for_update().filter(conversation=conversation):
        if redact_entry(entry, forgotten):
            days.add(entry.day)
            changed += 1
    return days, changed


def redact_entry(entry: MemoryEntry, forgotten: Forgotten) -> bool:
    """Its history too: what it said before must not be found there either."""
    for revision in entry.revisions.all():
        said = forgotten.redact(revision.text)
        if said != revision.text:
            revision.text = said
            revision.save(update_fields=["text"])
    text = forgotten.redact(entry.text)
    if text == entry.text:
        return False
    if not text.strip():
        remove_entries(entry.user_id, [entry.pk])
        entry.delete()
        return True
    entry.text = text
    entry.revision += 1
    entry.save(update_fields=["text", "revision", "updated_at"])
    if entry.state == MemoryEntry.State.KEPT:
        index_entry(entry)
    return True


def redact_conversation(conversation: Conversation, forgotten: Forgotten, now: datetime) -> None:
    """Its title and what its hooks wait with."""
    title = forgotten.redact(conversation.title)
    state = _redact_tree(conversation.hook_state, forgotten)
    if (title, state) != (conversation.title, conversation.hook_state):
        conversation.title, conversation.hook_state = title, state
        conversation.save(update_fields=["title", "hook_state"])
        event_log.append(conversation, updated_event(conversation, now))


def redact_runs(conversation: Conversation, forgotten: Forgotten) -> int:
    """What runs planned, failed with, called and sent. How many texts of requests went: their hash stands for all."""
    told = Run.objects.filter(conversation=conversation).exclude(error_message="", plan__isnull=True)
    for run in told:
        before = (run.plan, run.error_detail, run.error_message)
        run.plan = _redact_tree(run.plan, forgotten)
        run.error_detail = forgotten.redact(run.error_detail)
        run.error_message = forgotten.redact(run.error_message) or (STOPPED if run.error_message else "")
        if before != (run.plan, run.error_detail, run.error_message):
            run.save(update_fields=["plan", "error_detail", "error_message"])
    for call in ToolCall.objects.filter(run__conversation=conversation):
        told_before = (call.arguments, call.result)
        call.arguments = _redact_field("arguments", call.arguments, forgotten)
        call.result = _redact_tree(call.result, forgotten)
        if told_before != (call.arguments, call.result):
            call.save(update_fields=["arguments", "result"])
    return _forget_texts(RequestText.objects.filter(conversation=conversation), forgotten)


def forget_sent_profiles(user_id: UUID, forgotten: Forgotten) -> int:
    """What requests of any conversation hold of the profile that said it. How many texts went."""
    sent = RequestText.objects.filter(conversation__user_id=user_id, source="profile")
    return _forget_texts(sent, forgotten)


def _forget_texts(texts: QuerySet[RequestText], forgotten: Forgotten) -> int:
    gone = [row.pk for row, text in told_texts(texts) if forgotten.carried(text)]
    RequestText.objects.filter(pk__in=gone).delete()
    return len(gone)
