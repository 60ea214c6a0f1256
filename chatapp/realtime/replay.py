"""Restores stored events to the form in which readers get them, with the texts of the rows that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from agents.events import PlannedStep
from agents.plan.steps import OVER
from chatapp.compaction.models import Compaction
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape, plan_shape, run_error, tool_call_shape
from chatapp.long_term.models import ENTRY_PREVIEW_CHARS, MemoryEntry
from chatapp.long_term.selectors.scopes import open_scope
from chatapp.realtime.models import Event
from chatapp.recall.models import RECALL_PREVIEW_CHARS
from chatapp.runs.models import Run, ToolCall
from chatapp.runs.shapes import hook_call_text
from memory.language.terms import read_piece

MAX_PAGE_TOKENS = 500_000
"""Limit for the messages of one page, a few megabytes: a page stays in memory until a slow reader has taken it."""


def within_bound(rows: Sequence[Event]) -> Sequence[Event]:
    """Return the prefix of `rows` whose messages have at most MAX_PAGE_TOKENS together, but at least one row."""
    named = [row.payload["message"]["id"] if row.type in _OF_MESSAGES else None for row in rows]
    sizes = dict(
        Message.objects.filter(pk__in={pk for pk in named if pk}).values_list("pk", "token_estimate")
    )
    tokens = 0
    for count, pk in enumerate(named):
        # Pop it: a message's text is in memory only once, however many events name it.
        tokens += sizes.pop(UUID(pk), 0) if pk else 0
        if tokens > MAX_PAGE_TOKENS and count:
            return rows[:count]
    return rows


def full_events(rows: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the events of `rows` as they were sent, except that each text is the current one of its row.

    The number of queries depends on the kinds of events, not on their number. The rows must not be saved afterwards.
    """
    for types, add_texts in _BY_TYPES:
        chosen = [row for row in rows if row.type in types]
        if chosen:
            add_texts(chosen)
    return [row.payload for row in rows]


def _add_messages(rows: Sequence[Event]) -> None:
    ids = {row.payload["message"]["id"] for row in rows}
    messages = Message.objects.in_bulk(list(ids))
    runs = {run.answer_id: run for run in Run.objects.filter(answer__in=ids)}
    shapes = {str(message.pk): message_shape(message, runs.get(message.pk)) for message in messages.values()}
    for row in rows:
        place = row.payload["message"]
        # The event's own values win, because the message may have moved since.
        row.payload["message"] = shapes.get(place["id"], {**_DELETED, **place}) | place


_DELETED = {"role": "user", "content": "", "status": "complete", "pinned": False, "forgotten": True}
"""Values for a message whose row is gone."""


def _add_run_texts(rows: Sequence[Event]) -> None:
    runs = Run.objects.in_bulk([UUID(row.payload["run_id"]) for row in rows])
    for row in rows:
        run = runs.get(UUID(row.payload["run_id"]))
        if row.type == "plan":
            row.payload["steps"] = _full_steps(row.payload["steps"], run)
        elif run is not None and (error := run_error(run)) is not None:
            row.payload["error"] = error


def _full_steps(stored: Sequence[Mapping[str, Any]], run: Run | None) -> list[dict[str, Any]]:
    """Return the steps that are still in the plan, in their state at the time of the event."""
    planned = {step["id"]: step for step in (plan_shape(run) if run else None) or ()}
    steps = []
    for step in stored:
        if (text := planned.get(step["id"])) is not None:
            # A step that was not over had no result at the time of the event.
            result = text["result"] if step["state"] in OVER else ""
            full = PlannedStep(**{**text, **step, "result": result})
            steps.append(full.model_dump(mode="json"))
    return steps


def _add_calls(rows: Sequence[Event]) -> None:
    """Add the texts of the tool calls of models and hooks."""
    named = [row for row in rows if "call_id" in row.payload]
    calls = {
        (call.run_id, call.call_id): call
        for call in ToolCall.objects.filter(
            run__in={row.run_id for row in named}, call_id__in={row.payload["call_id"] for row in named}
        )
    }
    for row in named:
        call = calls.get((row.run_id, row.payload["call_id"])) if row.run_id else None
        if row.type == "hook":
            row.payload["text"] = hook_call_text(call) if call else ""
        else:
            row.payload |= _call_texts(call, row.payload["state"])


def _call_texts(call: ToolCall | None, state: str) -> dict[str, Any]:
    if call is None:
        return {"arguments": "{}", "arguments_cut": False, "preview": "", "truncated": False}
    if state in ToolCall.OPEN:  # there was no result yet
        call = ToolCall(call_id=call.call_id, arguments=call.arguments, state=state)
    shape = tool_call_shape(call)
    names = ("arguments", "arguments_cut", "preview", "truncated", "offload_ref")
    return {name: shape[name] for name in names if shape[name] is not None}


def _add_recalled(rows: Sequence[Event]) -> None:
    """Add recalled texts as their rows are now. Leave out items whose row is gone or may no longer be read by the
    conversation's user."""
    homes = Conversation.objects.select_related("scope").in_bulk({row.conversation_id for row in rows})
    scopes = {pk: open_scope(home) for pk, home in homes.items()}
    items = [item for row in rows for item in row.payload["items"]]
    owned = Message.objects.filter(conversation__user__isnull=False)
    messages = owned.in_bulk(_named(items, "message_id"))
    entries = MemoryEntry.objects.select_related("compaction").in_bulk(_named(items, "entry_id"))
    for row in rows:
        home = homes.get(row.conversation_id)
        for item in row.payload["items"]:
            message = messages.get(_id_in(item, "message_id"))
            entry = entries.get(_id_in(item, "entry_id"))
            text, role = "", ""
            if home is not None and message is not None and message.user_id == home.user_id:
                text, role = text_of(message.parts), message.role
            elif home is not None and entry is not None and _is_known_in(home, scopes[home.pk], entry):
                text = entry.text
            piece = read_piece(text, item.pop("start"), item.pop("end"), role)
            item["preview"] = piece[:RECALL_PREVIEW_CHARS]
        row.payload["items"] = [item for item in row.payload["items"] if item["preview"]]


def _is_known_in(home: Conversation, scope_id: UUID | None, entry: MemoryEntry) -> bool:
    """Return whether an entry is the user's own, or shared in `scope_id`, the conversation's open scope. Unlike in
    `shared_entries` of the long-term memory, an entry whose summary was undone stays hidden even if another summary
    says the same."""
    if entry.user_id == home.user_id:
        return True
    if entry.scope_id is None or entry.scope_id != scope_id:
        return False
    summary = entry.compaction
    is_undone = summary is not None and summary.status == Compaction.Status.UNDONE
    is_withdrawn = is_undone and entry.author == MemoryEntry.Author.EXTRACTION
    return entry.state == MemoryEntry.State.KEPT and not is_withdrawn


def _named(items: Iterable[Mapping[str, Any]], name: str) -> list[UUID]:
    return [UUID(item["source"][name]) for item in items if name in item["source"]]


def _id_in(item: Mapping[str, Any], name: str) -> UUID | None:
    return UUID(item["source"][name]) if name in item["source"] else None


def _add_entries(rows: Sequence[Event]) -> None:
    entries = MemoryEntry.objects.in_bulk([UUID(row.payload["entry_id"]) for row in rows])
    for row in rows:
        entry = entries.get(UUID(row.payload["entry_id"]))
        row.payload["preview"] = entry.text[:ENTRY_PREVIEW_CHARS] if entry else ""


def _add_conversations(rows: Sequence[Event]) -> None:
    conversations = Conversation.objects.in_bulk({row.conversation_id for row in rows})
    for row in rows:
        # The manager hides conversations that are being deleted.
        owner = conversations.get(row.conversation_id)
        title, shown = owner.title if owner else "", row.payload["conversation"]
        shown |= {
            "title": title,
            "context_policy": owner.context_policy if owner else {},
            "hooks": owner.hooks if owner else [],
            "last_seq": row.seq,
        }
        row.payload |= {"title": title, "model": shown["model"]}


_OF_MESSAGES = frozenset(
    {"message.created", "message.completed", "message.edited", "message.forgotten", "message.pinned"}
)
_BY_TYPES: tuple[tuple[frozenset[str], Callable[[Sequence[Event]], None]], ...] = (
    (_OF_MESSAGES, _add_messages),
    (frozenset({"plan", "run.finished"}), _add_run_texts),
    (frozenset({"tool", "hook"}), _add_calls),
    (frozenset({"recall"}), _add_recalled),
    (frozenset({"memory.written", "memory.proposed"}), _add_entries),
    (frozenset({"conversation.updated"}), _add_conversations),
)
