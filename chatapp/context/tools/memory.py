"""The memory of the calling user, and the earlier turns of the calling conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from heapq import nlargest
from uuid import UUID

from agents.tools.memory_tools import Hit
from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.accounts.selectors import time_zone_of
from chatapp.context.tools.branch_view import view_of
from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import messages_around, messages_before_run
from chatapp.long_term.files import daily_entry
from chatapp.long_term.selectors.entries import day_entries, entry_of
from chatapp.long_term.selectors.pauses import pauses_of
from chatapp.long_term.selectors.scopes import memory_access_in, shared_entries
from chatapp.operations import clock
from chatapp.operations.clock import zone_named
from chatapp.operations.database.access import find_row, parse_id
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import NotFound
from chatapp.recall.actions.sources import note_read
from chatapp.recall.analysis import analyzer
from chatapp.recall.selectors.found_texts import Found, source_of
from chatapp.recall.selectors.user_index import EVERYTHING, SearchFilter
from chatapp.recall.user_search import search_memory
from memory.long_term.daily import render_day

SPARE = 30
"""Extra results to fetch: some may belong to another branch, or date from a memory pause."""
SEARCHED = 20_000
"""Messages of one conversation that are searched, newest first. `memory_search` finds older ones."""


class UserMemory:
    async def search(self, caller: ToolCaller, query: str, limit: int) -> Sequence[Hit]:
        return await retry_on_outage(_search)(caller, query, limit)

    async def read_day(self, caller: ToolCaller, day: date) -> str:
        return await retry_on_outage(_read_day)(caller, day)

    async def read_entry(self, caller: ToolCaller, entry_id: str) -> str:
        return await retry_on_outage(_read_entry)(caller, entry_id)

    async def read_around(self, caller: ToolCaller, message_id: str, around: int) -> Sequence[Hit]:
        return await retry_on_outage(_read_around)(caller, message_id, around)


class OwnConversation:
    async def search(self, caller: ToolCaller, query: str, limit: int) -> Sequence[Hit]:
        return await retry_on_outage(_search_line)(caller, query, limit)


def _search(caller: ToolCaller, query: str, limit: int) -> list[Hit]:
    """Return the matches for the query, without texts of other conversations from a memory pause. Search only this
    conversation if it may not read others."""
    user_id, here = UUID(caller.user_id), UUID(caller.conversation_id)
    access = memory_access_in(here)
    only = EVERYTHING if access.reads_own else SearchFilter(conversation_id=here)
    found = search_memory(
        user_id=user_id,
        query=query,
        limit=limit + SPARE,
        now=clock.now(),
        only=only,
        scope_id=access.scope_id,
        zone=zone_named(time_zone_of(user_id)),
    )
    paused = pauses_of(user_id)
    of_branch = _without_other_branches(caller, found, here)
    known = [
        item
        for item in of_branch
        if item.conversation_id == here or not paused.covers(item.conversation_id, item.said_at)
    ][:limit]
    # Note the sources before the run gets the texts, here and below: forgetting follows them to the run's copies.
    note_read(caller.run_id, [one for item in known if (one := item.message_id or item.entry_id)])
    return [Hit(item.text, _named(item), item.said_at, item.role) for item in known]


def _without_other_branches(caller: ToolCaller, found: Sequence[Found], here: UUID) -> list[Found]:
    view = view_of(caller)
    own = [item for item in found if item.conversation_id == here]
    if view is None or not own:
        return list(found)
    hidden = view.hidden_entries([item.entry_id for item in own if item.entry_id])
    return [
        item
        for item in found
        if item.conversation_id != here
        or (view.shows(item.branch_id, item.position) if item.message_id else item.entry_id not in hidden)
    ]


def _check_open(caller: ToolCaller) -> None:
    access = memory_access_in(caller.conversation_id)
    if access.scope_id is not None:
        raise ToolFailure(
            "Here you can only read this conversation and the shared entries that memory_search finds."
        )
    if not access.reads_own:
        raise ToolFailure("Memory is paused or the chat is temporary, so only this conversation can be read.")


def _named(found: Found) -> str:
    source = source_of(found)
    if "message_id" in source:
        return f"message {source['message_id']}"
    shared = "shared " if found.kind == "shared" else ""
    return f"{shared}entry {source.get('entry_id', '')} of {source.get('day', '')}"


def _read_day(caller: ToolCaller, day: date) -> str:
    _check_open(caller)
    rows = day_entries(UUID(caller.user_id), day)
    if not rows:
        raise ToolFailure(f"There are no memory entries for {day.isoformat()}.")
    note_read(caller.run_id, [row.pk for row in rows])
    return render_day(day, [daily_entry(row) for row in rows])


def _read_entry(caller: ToolCaller, entry_id: str) -> str:
    scope_id = memory_access_in(caller.conversation_id).scope_id
    try:
        if scope_id is not None:
            shared = find_row(shared_entries(scope_id), entry_id)
            note_read(caller.run_id, [shared.pk])
            return f"{shared.day.isoformat()}\n\n{shared.text}"  # without where and by whom it was said
        _check_open(caller)
        row = entry_of(caller.user_id, entry_id)
    except NotFound:
        raise ToolFailure("This entry does not exist.") from None
    note_read(caller.run_id, [row.pk])
    return render_day(row.day, [daily_entry(row)])


def _read_around(caller: ToolCaller, message_id: str, around: int) -> list[Hit]:
    try:
        rows = messages_around(caller.user_id, message_id, around, own_conversation=caller.conversation_id)
    except NotFound:
        raise ToolFailure("This message does not exist.") from None
    here, paused = UUID(caller.conversation_id), pauses_of(UUID(caller.user_id))
    view = view_of(caller)
    if view is not None:
        rows = [row for row in rows if row.conversation_id != here or view.shows(row.branch_id, row.position)]
    # The branch may show the neighbours of a message but not the message itself.
    if not any(str(row.pk) == str(parse_id(message_id)) for row in rows):
        raise ToolFailure("This message does not exist.")
    known = [
        row
        for row in rows
        if row.conversation_id == here or not paused.covers(row.conversation_id, row.created_at)
    ]
    if any(row.conversation_id != here for row in known):
        _check_open(caller)
    note_read(caller.run_id, [row.pk for row in known])
    return [_hit(row, message_values.text_of(row.parts)) for row in known]


def _search_line(caller: ToolCaller, query: str, limit: int) -> list[Hit]:
    """Return the best messages: those with the largest share of the query's words, newest first among equals."""
    try:
        rows = messages_before_run(caller.user_id, caller.run_id, SEARCHED)
    except NotFound as error:
        raise ToolFailure(error.message) from None
    wanted = frozenset(analyzer.words(query))
    scored = ((_score(row, wanted), row.position, row) for row in rows)
    best = nlargest(limit, (item for item in scored if item[0]), key=lambda item: item[:2])
    note_read(caller.run_id, [row.pk for _, _, row in best])
    return [_hit(row, message_values.text_of(row.parts)) for _, _, row in best]


def _score(row: Message, wanted: frozenset[str]) -> float:
    """Return the share of the wanted words that the message contains."""
    if not wanted:
        return 0.0
    return len(wanted & frozenset(analyzer.words(message_values.text_of(row.parts)))) / len(wanted)


def _hit(row: Message, text: str) -> Hit:
    return Hit(text, f"message {row.pk}", row.created_at, row.role)
