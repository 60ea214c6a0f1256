"""Writes of summaries that are written anew after something they cover was forgotten: once, later again, or no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import span_ends
from chatapp.conversations.models import Conversation
from chatapp.long_term.actions.entries import record_entry, rewrite_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.errors import ReadForgotten
from chatapp.operations.forgetting_counts import check_forgetting_count
from chatapp.providers.actions import record_background_calls
from chatapp.providers.usage import CallUsage
from memory.consolidation import bare_line
from memory.hygiene import add_sentences

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)


@transaction.atomic
def complete_rewrite(
    *,
    row: Compaction,
    changes: Mapping[str, Any],
    learned: str,
    calls: Sequence[CallUsage],
    forgotten_count: int,
    now: datetime,
) -> bool:
    """Store `changes` and what was learned of them. Return False where something was forgotten since `row` and
    `forgotten_count` were read: then it is written again."""
    # Something else may have been forgotten meanwhile, or its user has edited the summary.
    held = Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since, summary=row.summary)
    try:
        # Before the conversation, as everybody locks them.
        check_forgetting_count(row.conversation.forgetting_keys, forgotten_count)
    except ReadForgotten:  # perhaps by a later piece of the same forgetting, which leaves the row as it is
        held = held.none()
    conversation = Conversation.objects.select_for_update().filter(pk=row.conversation_id).first()
    if conversation is None:
        return False
    # Also where the summary is not stored: the calls were made.
    record_background_calls(User(pk=conversation.owner_id), conversation.pk, calls)
    is_stored = held.update(rewrite_since=None, rewrite_after=None, **changes)
    if is_stored and learned:
        _learn_again(row.pk, learned, now)
    return bool(is_stored)


def _learn_again(compaction_id: UUID, learned: str, now: datetime) -> None:
    """Add to the summary's entry what the new summary says and the entry does not. Text of the user stays; an entry
    that forgetting emptied is recorded again."""
    if not any(map(bare_line, learned.splitlines())):
        return
    entry = MemoryEntry.objects.select_for_update().filter(compaction=compaction_id).first()
    if entry is not None:
        rewrite_entry(entry, add_sentences(entry.text, "", learned), MemoryEntry.Author(entry.author))
        return
    row = Compaction.objects.select_related("conversation__user", "conversation__agent").get(pk=compaction_id)
    if row.status == Compaction.Status.DONE:
        first_id, last_id = span_ends(row.branch, row.first_position, row.last_position)
        record_entry(compaction=row, text=learned, first_message_id=first_id, last_message_id=last_id, at=now)


@transaction.atomic
def postpone_rewrite(*, row: Compaction, calls: Sequence[CallUsage], now: datetime) -> None:
    """Let the rewrite be tried again, each time after twice as long."""
    since = row.rewrite_since or now
    # As long as it has been tried for, which doubles with each attempt.
    pause = min(max(now - since, FIRST_PAUSE), LONGEST_PAUSE)
    record_background_calls(User(pk=row.conversation.owner_id), row.conversation_id, calls)
    Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since).update(rewrite_after=now + pause)


@transaction.atomic
def end_rewrite(compaction_id: UUID) -> None:
    """End the rewrite; the extract stays as the summary."""
    Compaction.objects.filter(pk=compaction_id).update(rewrite_since=None, rewrite_after=None)
