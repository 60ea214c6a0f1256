"""Stores, postpones or ends the rewrite of summaries of which something was forgotten."""

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
from chatapp.operations.database.forgetting_counts import check_forgetting_count
from chatapp.operations.errors import ReadForgotten
from chatapp.providers.actions import record_background_calls
from chatapp.providers.usage import CallUsage
from memory.long_term.consolidation import bare_line
from memory.long_term.new_sentences import add_sentences

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
    """Store `changes` and the text `learned` from them. Return False if the row changed or something was forgotten
    since `row` and `forgotten_count` were read."""
    # Something else may have been forgotten meanwhile, or the user may have edited the summary.
    held = Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since, summary=row.summary)
    try:
        # Lock order: forgetting counts before conversations.
        check_forgetting_count(row.conversation.forgetting_keys, forgotten_count)
    except ReadForgotten:  # e.g. in a later piece of the same forgetting, which does not change the row
        held = held.none()
    conversation = Conversation.objects.select_for_update().filter(pk=row.conversation_id).first()
    if conversation is None:
        return False
    # Even if the summary is not stored, because the calls were made.
    record_background_calls(User(pk=conversation.owner_id), conversation.pk, calls)
    is_stored = held.update(rewrite_since=None, rewrite_after=None, **changes)
    if is_stored and learned:
        _learn_again(row.pk, learned, now)
    return bool(is_stored)


def _learn_again(compaction_id: UUID, learned: str, now: datetime) -> None:
    """Add to the summary's entry what only the new summary says. The user's text stays. Recreate a forgotten entry."""
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
    """Schedule the next attempt, each time after twice as long."""
    since = row.rewrite_since or now
    # The time since the first attempt, which doubles with each attempt.
    pause = min(max(now - since, FIRST_PAUSE), LONGEST_PAUSE)
    record_background_calls(User(pk=row.conversation.owner_id), row.conversation_id, calls)
    Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since).update(rewrite_after=now + pause)


@transaction.atomic
def end_rewrite(compaction_id: UUID) -> None:
    """End the rewrite; the extract stays as the summary."""
    Compaction.objects.filter(pk=compaction_id).update(rewrite_since=None, rewrite_after=None)
