"""Detaches conversations from their users. Rows are deleted in pieces (`removals`); daily files are marked as stale and
rewritten after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal
from chatapp.forgetting.selectors.derived import entries_going_with
from chatapp.long_term.actions.entries import delete_entries
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.models import EntrySource, MemoryEntry
from chatapp.realtime.hub import publish_deletion, stop_runs_after_commit
from chatapp.recall.actions.indexing import move_documents
from chatapp.recall.actions.removal import remove_sources
from chatapp.runs.models import Run, ToolCall


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a deletion leaves on disk: hashes of content that may be unused now, and offloaded files. Stale daily files
    and profiles are marked in their rows instead."""

    hashes: tuple[str, ...] = ()
    offloads: tuple[tuple[UUID, str], ...] = ()


def detach_conversation(
    conversation: Conversation,
    *,
    now: datetime,
    forgets_memory: bool,
    forgets: bool = False,
    for_good: bool = False,
    receipt: ForgetReceipt | None = None,
    keeps_rows: bool = False,
) -> Removal:
    """Detach a conversation from its user, so that nobody sees it after the commit, and return the work left to do. The
    caller's transaction must hold `conversation` locked.

    Its memory entries outlive it unless `forgets_memory`; their files are rewritten in either case, because they name
    the conversation. What is forgotten is not learned again, unless the conversation is temporary. With `keeps_rows` it
    goes to the trash, and rows that name it as a source stay.
    """
    user_id = conversation.owner_id
    own = MemoryEntry.objects.filter(conversation=conversation)
    entries = entries_going_with(conversation) if forgets_memory else own
    # Lock entries before the index, in the same order as learning does.
    held = list(entries.select_for_update().order_by("pk").values_list("pk", "day", "text"))
    mark_days_stale(user_id, {day for _, day, _ in held})
    if forgets_memory:
        remove_sources([pk for pk, _, _ in held])
        delete_entries(user_id, [pk for pk, _, _ in held])
    _end_work(conversation, now)
    if not keeps_rows:
        EntrySource.objects.filter(conversation=conversation).delete()
    ForgetProposal.objects.filter(conversation=conversation).delete()
    if held and not forgets_memory:
        move_documents(user_id, [pk for pk, _, _ in held], None)
    own.update(conversation=None)
    removal = Removal.objects.create(
        conversation_id=conversation.pk,
        user_id=user_id,
        phase=Removal.Phase.HIDE,
        forgets=forgets,
        keeps_rows=keeps_rows,
        raises_tombstones=forgets_memory and not conversation.temporary,
        for_good=for_good,
        entries={str(pk): text for pk, _, text in held} if forgets_memory else {},
        receipt=receipt,
        lease_expires_at=now + Removal.LEASE,
    )
    Conversation.objects.filter(pk=conversation.pk).update(user=None)
    transaction.on_commit(partial(publish_deletion, conversation.pk, user_id))
    return removal


def _end_work(conversation: Conversation, now: datetime) -> None:
    """End the runs and compactions of a conversation."""
    runs = Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE)
    ended = list(runs.values_list("pk", flat=True))
    runs.update(status=Run.Status.INTERRUPTED, fence=F("fence") + 1, lease_expires_at=None, finished_at=now)
    ToolCall.objects.filter(run__in=ended, state__in=ToolCall.OPEN).update(
        state=ToolCall.State.INTERRUPTED, finished_at=now
    )
    Compaction.objects.filter(conversation=conversation, status__in=Compaction.ACTIVE).update(
        status=Compaction.Status.FAILED, fence=F("fence") + 1, lease_expires_at=None, finished_at=now
    )
    stop_runs_after_commit(ended)


def lock_if_idle(conversation_id: UUID, idle_since: datetime) -> Conversation | None:
    """Return the conversation, locked like every new message locks it; None if it is gone or not idle any more."""
    conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    if conversation is None or conversation.pinned or conversation.last_activity_at >= idle_since:
        return None
    if conversation.kept_since and conversation.kept_since >= idle_since:
        return None
    if Run.active().filter(conversation=conversation).exists():
        return None
    return conversation
