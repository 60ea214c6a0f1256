"""Pages of what a branch shows: the newest, older or newer ones than a place, or those around a message."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp.errors import Conflict
from chatapp.models import Branch, Message
from chatapp.selectors.branches import visible_messages


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Oldest first. An empty page does not say what is beside it."""

    rows: list[Message]
    has_older: bool
    has_newer: bool

    @property
    def older_cursor(self) -> str | None:
        return str(self.rows[0].position) if self.rows and self.has_older else None

    @property
    def newer_cursor(self) -> str | None:
        return str(self.rows[-1].position) if self.rows and self.has_newer else None


def newest_page(branch: Branch, limit: int) -> MessagePage:
    rows, has_older = _cut(list(visible_messages(branch).order_by("-position")[: limit + 1]), limit)
    return MessagePage(rows[::-1], has_older, has_newer=False)


def page_before(branch: Branch, position: int, limit: int) -> MessagePage:
    seen = visible_messages(branch)
    older = seen.filter(position__lt=position).order_by("-position")
    rows, has_older = _cut(list(older[: limit + 1]), limit)
    return MessagePage(rows[::-1], has_older, seen.filter(position__gte=position).exists())


def page_after(branch: Branch, position: int, limit: int) -> MessagePage:
    newer = visible_messages(branch, position).order_by("position")
    rows, has_newer = _cut(list(newer[: limit + 1]), limit)
    return MessagePage(rows, visible_messages(branch).filter(position__lte=position).exists(), has_newer)


def page_around(branch: Branch, message: Message, limit: int) -> MessagePage:
    """With the message in the middle. Raises Conflict where the branch does not show it."""
    from_here = page_after(branch, message.position - 1, limit - limit // 2)
    if message not in from_here.rows:
        raise Conflict("This message stands in another branch; turn to it first.", code="other_branch")
    before = page_before(branch, message.position, limit // 2)
    return MessagePage(before.rows + from_here.rows, before.has_older, from_here.has_newer)


def _cut(found: list[Message], limit: int) -> tuple[list[Message], bool]:
    return found[:limit], len(found) > limit
