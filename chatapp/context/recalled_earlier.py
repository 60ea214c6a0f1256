"""Reads the texts that earlier questions in a view recalled, by reference, to show them again in the same place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from chatapp.context.assembly import LoadedContext
from chatapp.conversations import message_values
from chatapp.conversations.branches import is_visible, visible_spans
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import kept_entries, withdrawn_entries
from chatapp.long_term.selectors.scopes import shared_entries
from chatapp.operations.clock import in_zone
from chatapp.operations.database.statements import as_key, execute, placeholders
from chatapp.recall.selectors.found_texts import Found, piece_of
from chatapp.recall.turn_recall import InContext, Newer, RecalledTurn, describe_found
from memory.turns import starts_turn
from memory.types import Message
from memory.window.view import View

_ROWS = """
    SELECT run.question_id, CAST(run.created_at AS text), answer.branch_id, answer.position,
        source.source_id, source.place, source.start, source."end", CAST(source.until AS text), source.starts_anew,
        conversation.id, message.role, message.position, message.branch_id, CAST(message.parts AS text),
        CAST(message.created_at AS text)
    FROM chatapp_run run
    JOIN chatapp_message answer ON answer.id = run.answer_id
    JOIN chatapp_runsource source ON source.run_id = run.id AND source.place >= 0
    LEFT JOIN chatapp_message message ON message.id = source.source_id
    LEFT JOIN chatapp_conversation conversation ON conversation.id = message.conversation_id
        AND conversation.user_id = %s AND NOT conversation.temporary
    WHERE run.question_id IN {questions}
    ORDER BY answer.position, source.id
"""
"""A single statement, because every turn of a longer conversation runs it."""


class _Row(NamedTuple):
    """A row of `_ROWS`, as both databases return it."""

    question_id: Any
    asked_at: str
    branch_id: Any
    position: int
    source_id: Any
    place: int
    start: int
    end: int
    until: str | None
    starts_anew: bool
    conversation_id: Any
    role: str
    said_position: int
    said_branch_id: Any
    parts: str
    said_at: str


@dataclass(frozen=True, slots=True)
class EarlierRecall:
    """The turns that one question recalled and that may still be shown, in their order."""

    question_id: str
    turns: tuple[RecalledTurn, ...]


def recalled_earlier(loaded: LoadedContext, view: View, context: InContext) -> list[EarlierRecall]:
    """Return the turns that the questions of a view recalled since the last compaction or cut, oldest question first.

    If a question has several answers, use the newest one of this branch. Texts that were forgotten or changed since, or
    may not be shown here any more, are left out.
    """
    history = [one for one in view.history if one.position is None or one.position >= view.recalled_from]
    asked = _asked_since(history, loaded.inputs.checkpoint.made_at if loaded.inputs.checkpoint else None)
    rows = _rows_of_runs(loaded, asked) if asked else {}
    entries = _entries([row for of_run in rows.values() for row in of_run], loaded.user_id, context)
    return [
        EarlierRecall(question_id, tuple(_turns(of_run, entries, context)))
        for question_id, of_run in rows.items()
    ]


def _asked_since(history: Sequence[Message], moment: datetime | None) -> list[UUID]:
    return [
        UUID(message.id)
        for message in history
        if message.id
        and starts_turn(message)
        and not (moment and message.created_at and message.created_at <= moment)
    ]


def _rows_of_runs(loaded: LoadedContext, asked: Sequence[UUID]) -> dict[str, list[_Row]]:
    """Return the rows by question, without those before the last answer that started recall anew."""
    statement = _ROWS.format(questions=placeholders(len(asked)))
    rows = [_Row(*row) for row in execute(statement, loaded.user_id, *asked).fetchall()]
    spans = visible_spans(loaded.branch)
    found: dict[str, list[_Row]] = {}
    for _, of_run in groupby(rows, key=lambda row: row.position):
        first, *others = of_run
        if not is_visible(spans, as_key(first.branch_id), first.position):
            continue
        if first.starts_anew:
            found.clear()
        # A later answer to the same question replaces an earlier one.
        found[str(as_key(first.question_id))] = [first, *others]
    return found


def _entries(rows: Sequence[_Row], user_id: UUID, context: InContext) -> Mapping[UUID, MemoryEntry]:
    ids = {as_key(row.source_id) for row in rows if row.conversation_id is None}
    if not ids:
        return {}
    known = kept_entries().filter(user=user_id).exclude(pk__in=withdrawn_entries().values("pk"))
    if not context.access.reads_own:
        scope_id = context.access.scope_id
        known = shared_entries(scope_id) if scope_id is not None else MemoryEntry.objects.none()
    return known.in_bulk(list(ids))


def _turns(
    rows: Sequence[_Row], entries: Mapping[UUID, MemoryEntry], context: InContext
) -> Iterator[RecalledTurn]:
    for _, of_place in groupby(rows, key=lambda row: row.place):
        # In stored order: the recalled text, then the statements that are newer.
        piece, *notes = of_place
        found = _found(piece, entries, context)
        if found is not None:
            newer = [_newer(row, entries, context) for row in notes]
            yield replace(
                describe_found(found, context.zone), newer=tuple(note for note in newer if note is not None)
            )


def _newer(row: _Row, entries: Mapping[UUID, MemoryEntry], context: InContext) -> Newer | None:
    found = _found(row, entries, context)
    if found is None or row.until is None:
        return None
    until = in_zone(message_values.read_moment(row.until), context.zone)
    return Newer(found.source_id, row.start, row.end, until, found.text)


def _found(row: _Row, entries: Mapping[UUID, MemoryEntry], context: InContext) -> Found | None:
    entry = entries.get(as_key(row.source_id))
    if row.conversation_id is not None:
        found = _said(row)
    elif entry is not None and entry.updated_at <= message_values.read_moment(row.asked_at):
        found = _noted(row, entry, context)
    else:  # forgotten or changed since, so that the span no longer fits
        return None
    return found if found.text and context.may_show(found) else None


def _said(row: _Row) -> Found:
    return piece_of(
        "message",
        (row.start, row.end),
        message_values.text_of(json.loads(row.parts)),
        score=0.0,
        said_at=message_values.read_moment(row.said_at),
        role=row.role,
        conversation_id=as_key(row.conversation_id),
        message_id=as_key(row.source_id),
        branch_id=as_key(row.said_branch_id),
        position=row.said_position,
    )


def _noted(row: _Row, entry: MemoryEntry, context: InContext) -> Found:
    is_own = context.access.reads_own
    return piece_of(
        "entry" if is_own else "shared",
        (row.start, row.end),
        entry.text,
        score=0.0,
        said_at=entry.created_at,
        conversation_id=entry.conversation_id if is_own else None,
        entry_id=entry.pk,
        day=entry.day,
    )
