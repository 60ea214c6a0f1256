"""Deletion as a whole: the rows in one transaction, then what lies on disk. A crash between is mended by the sweeps."""

from __future__ import annotations

from datetime import datetime, timedelta

from chatapp import attachments, memory_files, offloads
from chatapp.actions import retention
from chatapp.actions.retention import Leftovers
from chatapp.models import Conversation
from chatapp.selectors import memory as memory_selectors


def remove_leftovers(leftovers: Leftovers) -> None:
    memory_files.write_days((leftovers.user_id, day) for day in leftovers.days)
    attachments.discard_content(leftovers.hashes)
    offloads.delete_folders(leftovers.conversations)


def delete_conversation(conversation: Conversation, *, forget_memory: bool) -> None:
    """When this returns, no row, index document or file shows the conversation."""
    remove_leftovers(retention.delete_conversation_data(conversation, forget_memory=forget_memory))


def delete_idle_conversations(*, now: datetime, days: int) -> int:
    """The clean-up: conversations nobody wrote to for `days` (0 = never); how many went."""
    if days <= 0:
        return 0
    idle_since = now - timedelta(days=days)
    deleted = 0
    for conversation_id in memory_selectors.idle_conversation_ids(idle_since):
        leftovers = retention.delete_if_idle(conversation_id, idle_since=idle_since)
        if leftovers is not None:
            remove_leftovers(leftovers)
            deleted += 1
    return deleted
