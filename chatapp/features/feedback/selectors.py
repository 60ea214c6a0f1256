"""Reads ratings: a user's own in a conversation, and counts by model and agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext

from chatapp.accounts.archive import ArchiveFile, json_file
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation
from chatapp.features.feedback.models import AnswerFeedback
from chatapp.operations.clock import iso_time

MOST_SHOWN = 1_000
GROUPS_SHOWN = 200


def ratings_in(user: User, conversation_id: str) -> QuerySet[AnswerFeedback]:
    """Return the user's newest ratings in this conversation. Raise NotFound."""
    conversation = accessible_conversation(user, conversation_id)
    rows = AnswerFeedback.objects.filter(user=user, message__conversation=conversation)
    return rows.order_by("-given_at", "pk")[:MOST_SHOWN]


def ratings_by_model_and_agent(rows: QuerySet[AnswerFeedback]) -> list[dict[str, Any]]:
    """Return counts (`model_name`, `agent__name`, `good`, `bad`), most bad ratings first."""
    # Remove the ordering, or its columns would become part of the GROUP BY.
    grouped = rows.order_by().values("model_name", "agent__name")
    counted = grouped.annotate(
        good=Count("pk", filter=Q(rating="good")), bad=Count("pk", filter=Q(rating="bad"))
    )
    ordered = counted.order_by("-bad", "-good", "model_name", "agent__name")
    return [dict(row) for row in ordered[:GROUPS_SHOWN]]


def reasons_of(rows: QuerySet[AnswerFeedback]) -> list[tuple[str, int]]:
    """Return how often each reason was given for a bad rating, most frequent first."""
    counted = rows.order_by().filter(rating="bad").values_list("reason").annotate(count=Count("pk"))
    return [
        (gettext(AnswerFeedback.Reason(reason).label), count)
        for reason, count in counted.order_by("-count", "reason")
    ]


def rating_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the user's ratings as JSON, for the account export."""
    rows = AnswerFeedback.objects.filter(user=user).order_by("given_at", "pk")
    found = [
        {
            "message_id": str(row.message_id) if row.message_id else None,
            "rating": row.rating,
            "reason": row.reason,
            "model": row.model_name,
            "given_at": iso_time(row.given_at),
        }
        for row in rows.iterator()
    ]
    if found:
        yield "ratings.json", json_file(found)
