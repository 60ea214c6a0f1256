"""After how many idle days a conversation is cleaned up; 0 = never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from chatapp.models import Conversation, GroupRetention
from memory.bounds import MAX_RETENTION_DAYS


def retention_days_of(user_ids: Iterable[UUID], default_days: int) -> Mapping[UUID, int]:
    """By user: the longest period of their groups, else the default."""
    users = set(user_ids)
    found: dict[UUID, list[int]] = {user_id: [] for user_id in users}
    rows = GroupRetention.objects.filter(group__user__in=users).values_list("group__user", "days")
    for user_id, days in rows:
        found[user_id].append(days)
    return {user_id: _longest(periods) if periods else default_days for user_id, periods in found.items()}


def _longest(periods: Iterable[int]) -> int:
    periods = list(periods)
    return 0 if min(periods) <= 0 else max(periods)


def _is_period(days: int) -> bool:
    """What is no number of days deletes nothing, whoever entered it."""
    return 0 < days <= MAX_RETENTION_DAYS


def idle_conversations(now: datetime, default_days: int) -> list[tuple[UUID, datetime]]:
    """`(conversation_id, idle_since)`, longest idle first. A hint: what is deleted is decided under a lock."""
    periods = [default_days, *GroupRetention.objects.values_list("days", flat=True)]
    shortest = min(filter(_is_period, periods), default=None)
    if shortest is None:
        return []
    rows = Conversation.objects.filter(pinned=False, last_activity_at__lt=now - timedelta(days=shortest))
    idle = list(rows.order_by("last_activity_at", "pk").values_list("pk", "user_id", "last_activity_at"))
    days_of = retention_days_of((user_id for _, user_id, _ in idle), default_days)
    since = {user_id: now - timedelta(days=days) for user_id, days in days_of.items() if _is_period(days)}
    return [
        (conversation_id, since[user_id])
        for conversation_id, user_id, last_activity_at in idle
        if user_id in since and last_activity_at < since[user_id]
    ]
