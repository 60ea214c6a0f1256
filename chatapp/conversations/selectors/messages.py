"""Reads messages: pages of a conversation, and messages as the API returns them, with what their runs did."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation, accessible_message
from chatapp.conversations.branches import siblings_of, visible_messages
from chatapp.conversations.message_values import MESSAGE_SQL, messages_from_columns, parts_to_json, text_of
from chatapp.conversations.models import Branch, Message
from chatapp.conversations.schemas.messages import PageAsked, message_shape, tool_call_shape
from chatapp.forgetting.models import ForgetProposal
from chatapp.long_term.models import ENTRY_PREVIEW_CHARS, MemoryEntry
from chatapp.operations.database.access import find_row, parse_id
from chatapp.operations.database.statements import execute, placeholders
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.realtime.models import Event
from chatapp.realtime.replay import full_events
from chatapp.runs.models import AnswerPiece, Run, ToolCall
from memory.bounds import MAX_ID
from memory.types import Message as MessageValue
from memory.types import Part, ReasoningPart, TextPart

# --- Pages ----------------------------------------------------------------------------------------------


def message_page(user: User, conversation_id: str, query: PageAsked) -> dict[str, Any]:
    """Return one page of the shown branch, oldest first, as the API returns it.

    Raise NotFound, InvalidInput, and Conflict if only another branch has the requested message.
    """
    conversation = accessible_conversation(user, conversation_id)
    assert conversation.branch is not None
    page = _read_page(user, conversation.branch, query)
    return {
        "items": full_messages(page.rows),
        "next_cursor": page.older_cursor,
        "newer_cursor": page.newer_cursor,
    }


@dataclass(frozen=True, slots=True)
class MessageRows:
    """One page, oldest first, and whether there are older and newer messages."""

    rows: list[Message]
    has_older: bool
    has_newer: bool

    @property
    def older_cursor(self) -> str | None:
        return str(self.rows[0].position) if self.rows and self.has_older else None

    @property
    def newer_cursor(self) -> str | None:
        return str(self.rows[-1].position) if self.rows and self.has_newer else None


def _read_page(user: User, branch: Branch, query: PageAsked) -> MessageRows:
    if query.around:
        message = accessible_message(user, branch.conversation_id, query.around)
        return page_around(branch, message, query.limit)
    if query.after:
        return page_after(branch, _position(user, branch, "after", query.after), query.limit)
    if query.before:
        return page_before(branch, _position(user, branch, "before", query.before), query.limit)
    return newest_page(branch, query.limit)


def _position(user: User, branch: Branch, field: str, cursor: str) -> int:
    """Return the position of a cursor, which is a number or a message id."""
    if not cursor.isdecimal():
        return accessible_message(user, branch.conversation_id, cursor).position
    # SQLite's driver raises OverflowError for an integer of more than 64 bits.
    if int(cursor) > MAX_ID:
        details = [{"field": field, "message": "is larger than any position"}]
        raise InvalidInput(f"{field} is larger than any position.", details=details)
    return int(cursor)


def newest_page(branch: Branch, limit: int) -> MessageRows:
    rows, has_older = _cut(visible_messages(branch).order_by("-position"), limit)
    return MessageRows(rows[::-1], has_older, has_newer=False)


def page_before(branch: Branch, position: int, limit: int) -> MessageRows:
    visible = visible_messages(branch)
    rows, has_older = _cut(visible.filter(position__lt=position).order_by("-position"), limit)
    return MessageRows(rows[::-1], has_older, visible.filter(position__gte=position).exists())


def page_after(branch: Branch, position: int, limit: int) -> MessageRows:
    rows, has_newer = _cut(visible_messages(branch, position).order_by("position"), limit)
    return MessageRows(rows, visible_messages(branch).filter(position__lte=position).exists(), has_newer)


def page_around(branch: Branch, message: Message, limit: int) -> MessageRows:
    """Return the page with the message in its middle. Raise Conflict if the branch does not show it."""
    from_here = page_after(branch, message.position - 1, limit - limit // 2)
    if message not in from_here.rows:
        raise Conflict("This message is in another branch; switch to it first.", code="other_branch")
    before = page_before(branch, message.position, limit // 2)
    return MessageRows(before.rows + from_here.rows, before.has_older, from_here.has_newer)


def _cut(rows: QuerySet[Message], limit: int) -> tuple[list[Message], bool]:
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


# --- Messages with everything that the UI shows --------------------------------------------------------

Details = dict[UUID, dict[str, Any]]
"""Fields to add to the shape of a message, by message id."""

_EVENTS_SHOWN = ("recall", "run.notice", "hook")


def full_messages(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of one page, oldest first, as the API returns them, with what their runs did."""
    answers = [row.pk for row in rows if row.role == Message.Role.ASSISTANT]
    runs = {run.answer_id: run for run in Run.objects.filter(answer__in=answers)}
    details = _read_details(rows, runs)
    return [
        message_shape(row, runs.get(row.pk)) | details.get(row.pk, {}) for row in with_stored_pieces(rows)
    ]


def full_message(row: Message) -> dict[str, Any]:
    return full_messages([row])[0]


def _read_details(rows: Sequence[Message], runs: Mapping[UUID, Run]) -> Details:
    details: Details = defaultdict(dict)
    if rows:
        answers = {run.pk: answer_id for answer_id, run in runs.items()}
        _add_events(details, answers)
        _add_tool_calls(details, answers)
        _add_entries(details, rows)
        _add_proposals(details, rows)
        _add_siblings(details, rows)
    return details


def _add_events(details: Details, answers: Mapping[UUID, UUID]) -> None:
    """Add the recalled items of each answer, and the notices of its run. `answers` maps runs to messages."""
    rows = list(Event.objects.filter(run__in=answers, type__in=_EVENTS_SHOWN).order_by("seq"))
    for row, event in zip(rows, full_events(rows), strict=True):
        assert row.run_id is not None
        answer = details[answers[row.run_id]]
        if row.type == "recall":
            answer["recalled"] = event["items"]
            answer["recalled_count"] = event.get("total_count") or len(event["items"])
        else:
            kind = "hook" if row.type == "hook" else event["kind"]
            answer.setdefault("notices", []).append({"seq": row.seq, "kind": kind, "text": event["text"]})


def _add_tool_calls(details: Details, answers: Mapping[UUID, UUID]) -> None:
    for call in ToolCall.objects.filter(run__in=answers).order_by("run", "ordinal"):
        details[answers[call.run_id]].setdefault("tools", []).append(tool_call_shape(call))


def _add_entries(details: Details, rows: Sequence[Message]) -> None:
    """Add each memory entry to the message that was the newest when the entry was written."""
    after = Message.objects.filter(conversation=rows[0].conversation_id, position=rows[-1].position + 1)
    until = after.values_list("created_at", flat=True).first()
    entries = MemoryEntry.objects.filter(
        conversation=rows[0].conversation_id, created_at__gte=rows[0].created_at, written_at__isnull=False
    )
    if until is not None:
        entries = entries.filter(created_at__lt=until)
    moments = [row.created_at for row in rows]
    for entry in entries.order_by("created_at", "pk"):
        row = rows[bisect_right(moments, entry.created_at) - 1]
        note = {
            "entry_id": str(entry.pk),
            "day": entry.day.isoformat(),
            "preview": entry.text[:ENTRY_PREVIEW_CHARS],
        }
        details[row.pk].setdefault("remembered", []).append(note)


def _add_proposals(details: Details, rows: Sequence[Message]) -> None:
    """Add the open proposals to forget to the messages with the requests."""
    open_ones = ForgetProposal.objects.filter(conversation=rows[0].conversation_id, receipt=None)
    asked = open_ones.filter(asked_in__in=[row.pk for row in rows])
    for proposal_id, message_id in asked.order_by("pk").values_list("pk", "asked_in"):
        assert message_id is not None
        details[message_id]["forget_proposal"] = str(proposal_id)


def _add_siblings(details: Details, rows: Sequence[Message]) -> None:
    siblings = siblings_of(rows)
    for row in rows:
        if row.pk in siblings:
            details[row.pk]["siblings"] = [str(message_id) for message_id in siblings[row.pk]]


# --- Answers being written -----------------------------------------------------------------------------


def with_stored_pieces(rows: Sequence[Message]) -> Sequence[Message]:
    """Return the rows; answers being written get the parts stored so far."""
    growing = {row.pk: row for row in rows if row.status == Message.Status.STREAMING}
    if not growing:
        return rows
    found: dict[tuple[UUID, str], list[str]] = {}
    pieces = AnswerPiece.objects.filter(message__in=growing).order_by("message", "kind", "offset")
    for message_id, kind, text in pieces.values_list("message_id", "kind", "text"):
        found.setdefault((message_id, kind), []).append(text)
    for pk, row in growing.items():
        reasoning = "".join(found.get((pk, AnswerPiece.Kind.REASONING), ()))
        text = "".join(found.get((pk, AnswerPiece.Kind.TEXT), ()))
        parts: list[Part] = [
            *([ReasoningPart(reasoning)] if reasoning else ()),
            *([TextPart(text)] if text else ()),
        ]
        if parts:
            row.parts = parts_to_json(parts)
    return rows


@dataclass(frozen=True, slots=True)
class StoredText:
    conversation_id: str
    text: str
    is_growing: bool


def stored_answer_text(user: User, message_id: str) -> StoredText:
    """Return the text of an answer as stored so far. Raise NotFound."""
    row = find_row(Message.objects.filter(conversation__user=user), message_id)
    is_growing = row.status == Message.Status.STREAMING
    with_stored_pieces([row])
    return StoredText(str(row.conversation_id), text_of(row.parts), is_growing)


QUEUED = Q(kind=Message.Kind.INJECTED, forgotten_at=None, position__gt=F("parent__position"))
"""Matches the messages for which `is_queued` is true."""


def is_queued(message: Message) -> bool:
    """Return whether the message was sent during a run and no model call has seen it, even if that run was stopped."""
    if message.kind != Message.Kind.INJECTED or message.forgotten_at is not None:
        return False
    return message.parent is not None and message.parent.position < message.position


# --- For tools ------------------------------------------------------------------------------------------

SPOKEN = (Message.Role.USER, Message.Role.ASSISTANT)


def messages_around(
    user_id: UUID | str, message_id: str, around: int, *, own_conversation: UUID | str | None = None
) -> list[Message]:
    """Return the message with `around` user or assistant messages before and after it in its branch, oldest first.

    Raise NotFound, also for temporary conversations other than `own_conversation`.
    """
    rows = Message.objects.select_related("branch", "conversation").filter(
        conversation__user_id=parse_id(user_id)
    )
    middle = rows.filter(pk=parse_id(message_id)).first()
    if middle is None or (
        middle.conversation.temporary and str(middle.conversation_id) != str(own_conversation)
    ):
        raise NotFound("This message does not exist.")
    spoken = visible_messages(middle.branch).filter(role__in=SPOKEN)
    before = spoken.filter(position__lte=middle.position).order_by("-position")[: around + 1]
    after = spoken.filter(position__gt=middle.position).order_by("position")[:around]
    return [*reversed(before), *after]


def messages_before_run(user_id: UUID | str, run_id: str, limit: int) -> Iterator[Message]:
    """Return user and assistant messages before the answer of this run, newest first. Raise NotFound."""
    runs = Run.objects.select_related("answer__branch").filter(conversation__user_id=parse_id(user_id))
    run = runs.filter(pk=parse_id(run_id)).first()
    if run is None:
        raise NotFound("This run does not exist.")
    rows = visible_messages(run.answer.branch).filter(role__in=SPOKEN, position__lt=run.answer.position)
    columns = rows.only("id", "role", "parts", "position", "created_at")
    return columns.order_by("-position")[:limit].iterator(chunk_size=500)


def messages_by_id(ids: Collection[UUID]) -> list[MessageValue]:
    """Return the messages that exist as values. The caller must have checked who owns them."""
    sql = f"SELECT {MESSAGE_SQL} FROM chatapp_message WHERE id IN {placeholders(len(ids))}"
    return messages_from_columns(execute(sql, *ids).fetchall())
