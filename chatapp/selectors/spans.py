"""The messages of a span, and how far one compaction may reach."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Sum

from chatapp.mapping import MESSAGE_COLUMNS, messages_from_columns
from chatapp.models import Branch, Message
from chatapp.selectors.branches import visible_messages
from memory.types import Message as MessageValue

MAX_SPAN = 2_000
"""Messages one compaction covers: a longer backlog becomes several checkpoints, each stored when it is done."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class Span:
    """What a compaction adds to its predecessor. `is_whole` is False where MAX_SPAN ended it early.

    `branch` is the one its last message was written in: all that leave it later see the same span.
    """

    branch: Branch

    first_position: int
    last_position: int
    message_count: int
    tokens: int
    is_whole: bool


def measure_span(branch: Branch, first_position: int, last_position: int) -> Span:
    """From `first_position` on, ended before a user message where it would be too long."""
    end = _early_end(branch, first_position, last_position)
    is_whole = end is None
    last = last_position if end is None else end
    counted = visible_messages(branch, first_position - 1).filter(position__lte=last)
    totals = counted.aggregate(count=Count("pk"), tokens=Sum("token_estimate"))
    return Span(
        _branch_at(branch, last), first_position, last, totals["count"], totals["tokens"] or 0, is_whole
    )


def _branch_at(branch: Branch, position: int) -> Branch:
    """The one that owns the last message up to `position`."""
    rows = visible_messages(branch).filter(position__lte=position).order_by("-position")
    owner = rows.values_list("branch_id", flat=True).first()
    return branch if owner in (None, branch.pk) else Branch.objects.get(pk=owner)


def _early_end(branch: Branch, first_position: int, last_position: int) -> int | None:
    rows = (
        visible_messages(branch, first_position - 1).filter(position__lte=last_position).order_by("position")
    )
    beyond = rows[MAX_SPAN : MAX_SPAN + 1].values_list("position", flat=True).first()
    if beyond is None:
        return None
    turn = (
        rows.filter(position__gte=beyond, role=Message.Role.USER).values_list("position", flat=True).first()
    )
    return turn - 1 if turn is not None else None


def span_messages(branch: Branch, first_position: int, last_position: int) -> Iterator[MessageValue]:
    """In order, a page at a time."""
    rows = visible_messages(branch, first_position - 1).filter(position__lte=last_position)
    columns = rows.order_by("position").values_list(*MESSAGE_COLUMNS).iterator(chunk_size=PAGE)
    while page := list(itertools.islice(columns, PAGE)):
        yield from (message for message in messages_from_columns(page) if message.parts)


def span_ends(branch: Branch, first_position: int, last_position: int) -> tuple[UUID, UUID]:
    """The ids of its first and last message."""
    rows = (
        visible_messages(branch, first_position - 1).filter(position__lte=last_position).order_by("position")
    )
    ids = rows.values_list("pk", flat=True)
    first, last = ids.first(), ids.last()
    if first is None or last is None:
        raise ValueError(f"There are no messages from {first_position} to {last_position}.")
    return first, last


def was_forgotten_since(conversation_id: UUID, moment: datetime) -> bool:
    """Whether something in it was."""
    return Message.objects.filter(conversation_id=conversation_id, forgotten_at__gte=moment).exists()
