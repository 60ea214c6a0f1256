"""The tools that other assistants may call, with the scopes that a token needs for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import Field

from chatapp.accounts.models import User
from chatapp.conversations.schemas.messages import PageAsked
from chatapp.conversations.selectors.conversations import conversation_page, full_conversations
from chatapp.conversations.selectors.messages import message_page
from chatapp.forgetting import services as forgetting
from chatapp.long_term import changes
from chatapp.long_term.files import daily_entry
from chatapp.long_term.schemas import EntryText, entry_shape
from chatapp.long_term.selectors.entries import day_entries, list_days
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.http.cursors import decode_cursor, encode_cursor
from chatapp.operations.http.schemas import Body
from chatapp.recall.schemas import result_shape
from chatapp.recall.user_search import search_marked
from memory.bounds import MAX_QUERY_CHARS, MAX_TITLE_CHARS, Cursor, Day, Id
from memory.long_term.daily import render_day

Arguments = TypeVar("Arguments", bound=Body)
READS_MEMORY = frozenset({"memory", "read"})
WRITES_MEMORY = frozenset({"memory"})
READS_CHATS = frozenset({"chat", "read"})
MAX_RESULTS = 50


@dataclass(frozen=True, slots=True)
class McpTool(Generic[Arguments]):
    """A tool. `run` takes the user and valid arguments, and returns a JSON object. One of `scopes` is enough."""

    name: str
    description: str
    arguments: type[Arguments]
    scopes: frozenset[str]
    run: Callable[[User, Arguments], dict[str, Any]]
    is_read_only: bool = True
    is_destructive: bool = False


class Search(Body):
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS, description="A question, or words.")
    limit: int = Field(10, ge=1, le=MAX_RESULTS)


def search(user: User, asked: Search) -> dict[str, Any]:
    found = search_marked(user=user, query=asked.query, limit=asked.limit, now=clock.now())
    return {"items": [result_shape(result) for result in found]}


class Days(Body):
    before: Day | None = Field(None, description="Only days before this one: the last of the previous page.")
    limit: int = Field(30, ge=1, le=MAX_RESULTS)


def days(user: User, asked: Days) -> dict[str, Any]:
    found = list_days(user, before=asked.before, limit=asked.limit)
    return {"items": [{"day": each.day.isoformat(), "entry_count": each.entry_count} for each in found]}


class ReadDay(Body):
    day: Day = Field(description="Such as 2026-11-22.")


def read_day(user: User, asked: ReadDay) -> dict[str, Any]:
    rows = day_entries(user.pk, asked.day)
    return {
        "day": asked.day.isoformat(),
        "markdown": render_day(asked.day, [daily_entry(row) for row in rows]) if rows else "",
        "entries": [entry_shape(row) for row in rows],
    }


class NewEntry(Body):
    text: EntryText
    day: Day | None = Field(None, description="Today, in the user's time zone, by default.")


def add_entry(user: User, new: NewEntry) -> dict[str, Any]:
    return entry_shape(changes.add_entry(user=user, text=new.text, day=new.day, now=clock.now()))


class OneEntry(Body):
    entry_id: Id


def forget_entry(user: User, asked: OneEntry) -> dict[str, Any]:
    forgetting.forget_entry(user, parse_id(asked.entry_id), now=clock.now())
    return {"forgotten": asked.entry_id}


class ListConversations(Body):
    query: str = Field("", max_length=MAX_TITLE_CHARS, description="Part of the title.")
    cursor: Cursor = None
    limit: int = Field(20, ge=1, le=MAX_RESULTS)


def list_conversations(user: User, asked: ListConversations) -> dict[str, Any]:
    rows, has_more = conversation_page(
        user,
        query=asked.query,
        archived=False,
        cursor=decode_cursor(asked.cursor),
        limit=asked.limit,
    )
    shown = ("id", "title", "message_count", "last_activity_at", "created_at", "pinned")
    items = [{name: row[name] for name in shown} for row in full_conversations(rows)]
    next_cursor = encode_cursor(rows[-1].last_activity_at, rows[-1].pk) if has_more else None
    return {"items": items, "next_cursor": next_cursor}


class ReadConversation(Body):
    conversation_id: Id
    before: str | None = Field(
        None, max_length=100, description="next_cursor of the previous page, for older messages."
    )
    limit: int = Field(30, ge=1, le=MAX_RESULTS)


def read_conversation(user: User, asked: ReadConversation) -> dict[str, Any]:
    page = message_page(
        user,
        asked.conversation_id,
        PageAsked(before=asked.before, after=None, around=None, limit=asked.limit),
    )
    shown = ("id", "role", "content", "status", "created_at")
    items = [{name: message[name] for name in shown} for message in page["items"]]
    return {"items": items, "next_cursor": page["next_cursor"]}


TOOLS: tuple[McpTool[Any], ...] = (
    McpTool(
        "memory_search",
        "Searches everything the user ever said, was answered or has in memory; best match first, each with its source "
        "and date. `superseded_by` marks what something newer replaced.",
        Search,
        READS_MEMORY,
        search,
    ),
    McpTool(
        "memory_days", "Lists the days that have memory entries, newest first.", Days, READS_MEMORY, days
    ),
    McpTool("memory_read_day", "Reads the memory entries of one day.", ReadDay, READS_MEMORY, read_day),
    McpTool(
        "memory_add",
        "Remembers something for the user, in the words given.",
        NewEntry,
        WRITES_MEMORY,
        add_entry,
        is_read_only=False,
    ),
    McpTool(
        "memory_forget",
        "Forgets one memory entry for good, with what was made of it.",
        OneEntry,
        WRITES_MEMORY,
        forget_entry,
        is_read_only=False,
        is_destructive=True,
    ),
    McpTool(
        "conversations_list",
        "Lists the user's conversations, the most recently used first.",
        ListConversations,
        READS_CHATS,
        list_conversations,
    ),
    McpTool(
        "conversation_read",
        "Reads a page of a conversation, the newest by default; oldest first within the page.",
        ReadConversation,
        READS_CHATS,
        read_conversation,
    ),
)
