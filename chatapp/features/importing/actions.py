"""Writes what an import brings along: conversations, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Q, Sum

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.conversations import note_pause
from chatapp.conversations.actions.imports import import_conversation
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.importing.models import ImportedConversation
from chatapp.features.importing.summaries import Summary
from chatapp.features.importing.tree import Grown
from chatapp.features.importing.values import SourceConversation
from chatapp.files.models import Attachment
from chatapp.operations.work_budget import Pace

LINKED_AT_ONCE = 100
ORDER_SQUEEZED = 100_000
"""Imported conversations are active now, so that no clean-up deletes them tomorrow. Ten years become an hour, which
keeps their order."""


def store_source(
    *,
    user: User,
    source: SourceConversation,
    source_key: str,
    grown: Grown,
    summaries: Sequence[Summary],
    files: Mapping[str, Attachment],
    settings: Mapping[str, Any],
    now: datetime,
    pace: Pace,
) -> Conversation | None:
    """Store a conversation in pieces and return it; None where another import has brought it along meanwhile."""
    finish = partial(
        _finish,
        user=user,
        source=source,
        source_key=source_key,
        grown=grown,
        summaries=summaries,
        files=files,
        settings=settings,
        now=now,
    )
    try:
        return import_conversation(
            user=user,
            messages=grown.messages,
            now=now,
            title=source.title,
            pace=pace,
            branches=grown.branches,
            complete=finish,
            index_at_once=0,  # a file has many: they would be seconds apart
        )
    except IntegrityError:
        if ImportedConversation.objects.filter(user=user, source_key=source_key).exists():
            return None
        raise


def _finish(
    conversation: Conversation,
    *,
    branches: Sequence[Branch],
    user: User,
    source: SourceConversation,
    source_key: str,
    grown: Grown,
    summaries: Sequence[Summary],
    files: Mapping[str, Attachment],
    settings: Mapping[str, Any],
    now: datetime,
) -> None:
    """In the transaction that shows the conversation."""
    said = [message.created_at for message in grown.messages if message.created_at]
    began, ended = source.created_at or min(said, default=now), source.updated_at or max(said, default=now)
    conversation.created_at = min(began, now)
    conversation.last_activity_at = now - (now - min(ended, now)) / ORDER_SQUEEZED
    conversation.archived, conversation.pinned = source.is_archived, source.is_pinned
    for name, value in settings.items():
        setattr(conversation, name, value)
    conversation.save(update_fields=["created_at", "last_activity_at", "archived", "pinned", *settings])
    if conversation.memory == Conversation.Memory.PAUSED:
        # Since when is not known: nothing of it is learned.
        note_pause(user, conversation, True, conversation.created_at)
    ImportedConversation.objects.create(user=user, source_key=source_key, conversation=conversation)
    _store_summaries(conversation, branches, summaries, now)
    _link_files(conversation, grown, files)


def _store_summaries(
    conversation: Conversation,
    branches: Sequence[Branch],
    summaries: Sequence[Summary],
    now: datetime,
) -> None:
    stored: dict[str, Compaction] = {}
    newest: dict[int, Compaction] = {}
    for summary in summaries:
        previous = stored.get(summary.previous) or newest.get(summary.branch)
        span = Q(position__gte=summary.first_position, position__lte=summary.last_position)
        rows = Message.objects.filter(span, conversation=conversation)
        tokens = rows.aggregate(total=Sum("token_estimate"))["total"] or 0
        columns = {**summary.columns, "created_at": summary.columns["created_at"] or now}
        row = Compaction.objects.create(
            conversation=conversation,
            branch=branches[summary.branch],
            previous=previous,
            first_position=summary.first_position,
            last_position=summary.last_position,
            status=Compaction.Status.DONE,
            span_tokens=tokens,
            covered_tokens=tokens + (previous.covered_tokens if previous else 0),
            context_kept_at=now,  # what left the context is in the messages themselves
            **columns | {"finished_at": columns["finished_at"] or columns["created_at"]},
        )
        stored[summary.id] = newest[summary.branch] = row


def _link_files(conversation: Conversation, grown: Grown, files: Mapping[str, Attachment]) -> None:
    shown = {
        position: [part["file_id"] for part in parts if part.get("file_id") in files]
        for position, message in enumerate(grown.messages)
        if files and (parts := message.columns.get("parts"))
    }
    positions = [position for position, ids in shown.items() if ids]
    links = Attachment.messages.through
    for first in range(0, len(positions), LINKED_AT_ONCE):
        some = positions[first : first + LINKED_AT_ONCE]
        rows = Message.objects.filter(conversation=conversation, position__in=some)
        links.objects.bulk_create(
            links(attachment_id=UUID(file_id), message_id=message_id)
            for message_id, position in rows.values_list("pk", "position")
            for file_id in dict.fromkeys(shown[position])
        )
