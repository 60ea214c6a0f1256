"""Appends the messages that left a context, word for word, to their conversation's context.jsonl, in a worker."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from chatapp.compaction.actions.compactions import mark_context_kept, note_context_discarded
from chatapp.compaction.selectors import compaction_to_keep, may_be_kept_already, span_messages
from chatapp.files.offloads import kept_ids, offloader
from chatapp.operations import clock
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.operations.errors import NotFound, ReadForgotten

log = logging.getLogger(__name__)

FIRST_ATTEMPT = timedelta(minutes=5)
"""Until then the task woken by the commit may be running; after that, its worker may have died."""


def keep_left_context(compaction_id: UUID) -> None:
    """Append the messages of a compaction to its conversation's file.

    Safe to repeat: skip messages appended before, by a worker that died or for a compaction since undone.
    """
    row = compaction_to_keep(compaction_id)
    if row is None:
        return
    # Read the count before the messages, because what is forgotten later may be among them.
    forgotten_count = read_forgetting_count(row.conversation.forgetting_keys)
    conversation_id = str(row.conversation_id)
    messages = list(span_messages(row.branch, row.first_position, row.last_position))
    is_late = row.finished_at is None or clock.now() - row.finished_at > FIRST_ATTEMPT
    if is_late or may_be_kept_already(row):
        kept = kept_ids(row.conversation_id)
        messages = [message for message in messages if message.id not in kept]
    offloads = offloader()
    try:
        reference = offloads.offload_context(conversation_id, messages) if messages else ""
    except NotFound:
        log.info("Conversation %s was deleted before its old messages were stored.", conversation_id)
        return
    try:
        mark_context_kept(row=row, forgotten_count=forgotten_count, now=clock.now())
    except ReadForgotten:
        log.info(
            "Something was forgotten while the messages of compaction %s were being stored.", compaction_id
        )
        if reference:
            # Discard first, so that a crash in between leaves no forgotten text.
            offloads.discard(conversation_id, [reference])
            note_context_discarded(row.conversation_id)
