"""Reads conversations: pages, API responses, and when the clean-up may delete them."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import connection
from django.db.models import Func, Q, QuerySet, TextField

from chatapp.accounts.group_access.selectors import groups_of
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import IS_UNREAD, TEMPORARY_DAYS, Conversation, Folder, GroupRetention
from chatapp.conversations.schemas.conversations import conversation_shape, days_kept
from chatapp.operations.caching.editions import cached
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.database.sqlite3.base import FOLD_CASE, fold_case
from chatapp.operations.database.statements import as_key, execute
from chatapp.operations.database.text import normalize_text
from chatapp.operations.http.cursors import newest_first
from chatapp.runs.models import Run, ToolCall
from memory.bounds import MAX_RETENTION_DAYS

NO_FOLDER: Literal["none"] = "none"


def conversation_page(
    user: User,
    *,
    query: str,
    archived: bool,
    cursor: tuple[datetime, UUID] | None,
    limit: int,
    folder: Folder | Literal["none"] | None = None,
    attention: bool = False,
) -> tuple[list[Conversation], bool]:
    """Return (one page, most recently used first; whether there are more), without temporary conversations. `query`: a
    part of the title. `folder` None: in any folder or none. `attention`: only those unread or waiting for an approval.
    """
    rows = Conversation.objects.filter(user=user, archived=archived, temporary=False)
    rows = rows.select_related("model", "agent", "scope")
    if folder is not None:
        rows = rows.filter(folder=None if folder == NO_FOLDER else folder)
    # Clean the query like titles when they are stored.
    if part := normalize_text(query, len(query)).strip():
        rows = _with_title(rows, part)
    rows = newest_first(rows, "last_activity_at", cursor)
    found = _needing_attention(rows, user, limit + 1) if attention else list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def _with_title(rows: QuerySet[Conversation], part: str) -> QuerySet[Conversation]:
    """Return the rows with this part in their title, ignoring case and Unicode composition, which titles keep."""
    if connection.vendor != "sqlite":
        composed = Func("title", function="NORMALIZE", output_field=TextField())
        return rows.alias(composed=composed).filter(composed__icontains=unicodedata.normalize("NFC", part))
    # LIKE in SQLite is case-insensitive for ASCII only.
    folded = Func("title", function=FOLD_CASE, output_field=TextField())
    return rows.alias(folded=folded).filter(folded__contains=fold_case(part))


def _needing_attention(rows: QuerySet[Conversation], user: User, limit: int) -> list[Conversation]:
    """Return the first rows that are unread or wait for an approval. Each condition has a query with its own index,
    which an OR could not use. An answer being written is not unread yet."""
    waiting = [as_key(key) for (key,) in execute(_WAITING, user.pk).fetchall()]
    # Read the active runs of all users: for those of one user, SQLite would search all runs of that user.
    answering = list(Run.active().values_list("conversation", flat=True))
    found = {*rows.filter(IS_UNREAD).exclude(pk__in=answering)[:limit], *rows.filter(pk__in=waiting)[:limit]}
    return sorted(found, key=lambda row: (row.last_activity_at, row.pk), reverse=True)[:limit]


_WAITING = """
SELECT DISTINCT run.conversation_id FROM chatapp_toolcall AS call CROSS JOIN chatapp_run AS run
WHERE call.state = 'waiting' AND call.decision = '' AND run.id = call.run_id AND run.user_id = %s
"""
"""Begins at the few waiting calls of all users, because SQLite reads the tables of a CROSS JOIN in the given order."""


def titles_of(user: User, conversation_ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return the titles of the user's conversations among these."""
    rows = Conversation.objects.filter(user=user, pk__in={pk for pk in conversation_ids if pk})
    return dict(rows.values_list("pk", "title"))


def full_conversations(rows: Sequence[Conversation]) -> list[dict[str, Any]]:
    """Return the conversations as the API returns them, with their active runs."""
    active = {run.conversation_id: run for run in Run.active().filter(conversation__in=rows)}
    undecided = ToolCall.undecided().filter(run__in=active.values())
    # Only calls of an active run can wait.
    waiting = Counter(undecided.values_list("run__conversation", flat=True)) if active else Counter()
    default_days = current("RETENTION_DAYS")
    days = {user_id: retention_days_of(user_id, default_days) for user_id in {row.owner_id for row in rows}}
    return [conversation_shape(row, days[row.owner_id], active.get(row.pk), waiting[row.pk]) for row in rows]


def full_conversation(row: Conversation) -> dict[str, Any]:
    return full_conversations([row])[0]


def retention_days_of(user_id: UUID, default_days: int) -> int:
    """Return the retention period of a user: the longest of their groups', else the default; 0 = for ever."""
    days_of = _days_of_groups()
    # Read no groups if no group has a period.
    groups = groups_of(user_id) if days_of else ()
    return _longest([days_of[group] for group in groups if group in days_of], default_days)


def _days_of_groups() -> Mapping[int, int]:
    return cached("group retention", lambda: dict(GroupRetention.objects.values_list("group", "days")))


def _longest(periods: Sequence[int], default_days: int) -> int:
    # 0 means for ever, so it is the longest.
    return (0 if min(periods) <= 0 else max(periods)) if periods else default_days


def _is_period(days: int) -> bool:
    """Return whether conversations are deleted after so many days; they are not if the number is out of range."""
    return 0 < days <= MAX_RETENTION_DAYS


def idle_conversations(now: datetime, default_days: int) -> list[tuple[UUID, datetime]]:
    """Return `(conversation_id, idle_since)`, longest idle first. Check again under the lock before deleting."""
    days_of = _days_of_groups()
    shortest = min(filter(_is_period, [default_days, *days_of.values()]), default=MAX_RETENTION_DAYS)
    # Query by the shortest period of all, then compare each row with the period of its user.
    is_idle = Q(last_activity_at__lt=now - timedelta(days=shortest))
    is_idle |= Q(temporary=True, last_activity_at__lt=now - timedelta(days=TEMPORARY_DAYS))
    rows = Conversation.objects.filter(is_idle, pinned=False)
    columns = ("pk", "user_id", "temporary", "last_activity_at", "kept_since")
    idle = list(rows.order_by("last_activity_at", "pk").values_list(*columns))
    periods: defaultdict[UUID, list[int]] = defaultdict(list)
    members = User.groups.through.objects.filter(group__in=days_of)
    for user_id, group in members.values_list("user", "group"):
        periods[user_id].append(days_of[group])
    found = []
    for conversation_id, user_id, temporary, last_activity_at, kept_since in idle:
        days = days_kept(_longest(periods.get(user_id, ()), default_days), temporary=temporary)
        since = now - timedelta(days=days) if _is_period(days) else None
        if since and max(last_activity_at, kept_since or last_activity_at) < since:
            found.append((conversation_id, since))
    return found


def scope_for(agent: Agent | None, *, temporary: bool) -> Agent | None:
    """Return the agent whose shared memory a new conversation with this agent uses, if any."""
    is_open = agent is not None and agent.enabled and agent.shares_memory and agent.uses_memory
    return agent if is_open and not temporary else None
