"""The resources that other assistants may read: the profile, days of memory, conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from chatapp.accounts.models import User
from chatapp.conversations.schemas.messages import PageAsked
from chatapp.conversations.selectors.conversations import conversation_page
from chatapp.conversations.selectors.messages import message_page
from chatapp.features.mcp_server.tools import READS_CHATS, READS_MEMORY
from chatapp.long_term.files import daily_entry
from chatapp.long_term.selectors.entries import day_entries, list_days
from chatapp.long_term.selectors.profile import profile_of
from chatapp.operations.errors import NotFound
from memory.bounds import Day
from memory.long_term.daily import render_day

LISTED = 50
SHOWN_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """Resources of one URI form. `listed` yields (URI, name) of the user's; `read` takes the user and the variable part
    of the URI, and returns Markdown."""

    template: str
    name: str
    description: str
    scopes: frozenset[str]
    listed: Callable[[User], Iterator[tuple[str, str]]]
    read: Callable[[User, str], str]

    def named_in(self, uri: str) -> str | None:
        """Return the variable part of a URI, empty if the form has none; None if the URI has another form."""
        pattern = re.sub(r"\\\{\w+\\\}", "([^/]{1,100})", re.escape(self.template))
        match = re.fullmatch(pattern, uri)
        return None if match is None else (match[1] if match.groups() else "")

    @property
    def is_template(self) -> bool:
        return "{" in self.template


def _profile(user: User) -> Iterator[tuple[str, str]]:
    yield PROFILE_URI, "Profile"


def _read_profile(user: User, _: str) -> str:
    return profile_of(user.pk).text


def _days(user: User) -> Iterator[tuple[str, str]]:
    for each in list_days(user, limit=LISTED):
        yield DAY_URI.format(day=each.day.isoformat()), each.day.isoformat()


def _read_day(user: User, raw: str) -> str:
    try:
        day = TypeAdapter(Day).validate_python(raw)
    except ValidationError:
        raise NotFound() from None
    rows = day_entries(user.pk, day)
    if not rows:
        raise NotFound()
    return render_day(day, [daily_entry(row) for row in rows])


def _conversations(user: User) -> Iterator[tuple[str, str]]:
    rows, _ = conversation_page(user, query="", archived=False, cursor=None, limit=LISTED)
    for row in rows:
        yield CONVERSATION_URI.format(id=row.pk), row.title or "Conversation"


def _read_conversation(user: User, conversation_id: str) -> str:
    page = message_page(
        user, conversation_id, PageAsked(before=None, after=None, around=None, limit=SHOWN_MESSAGES)
    )
    texts = [f"## {each['role'].capitalize()}\n\n{_text(each['content'])}\n" for each in page["items"]]
    cut = f"(The newest {SHOWN_MESSAGES} messages; conversation_read has the older ones.)\n\n"
    return (cut if page["next_cursor"] else "") + "\n".join(texts)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


PROFILE_URI = "palimpsest://memory/profile"
DAY_URI = "palimpsest://memory/days/{day}"
CONVERSATION_URI = "palimpsest://conversations/{id}"

KINDS: tuple[ResourceKind, ...] = (
    ResourceKind(
        PROFILE_URI,
        "profile",
        "The short standing memory of the user.",
        READS_MEMORY,
        _profile,
        _read_profile,
    ),
    ResourceKind(
        DAY_URI, "day", "What was remembered on a day, such as 2026-11-22.", READS_MEMORY, _days, _read_day
    ),
    ResourceKind(
        CONVERSATION_URI,
        "conversation",
        "The newest messages of a conversation.",
        READS_CHATS,
        _conversations,
        _read_conversation,
    ),
)
