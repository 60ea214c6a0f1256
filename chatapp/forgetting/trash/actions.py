"""Moves conversations to the trash and back."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.conversations.schemas.conversations import expires_at
from chatapp.conversations.selectors.conversations import retention_days_of
from chatapp.forgetting.actions.collecting import begin_forgetting
from chatapp.forgetting.actions.deletion import detach_conversation, lock_if_idle
from chatapp.forgetting.actions.forget_all import StartedForgetting, forget_conversation
from chatapp.forgetting.models import Removal, TrashedConversation
from chatapp.forgetting.selectors.forgotten import FORGOTTEN_MEANWHILE, has_more_to_forget
from chatapp.forgetting.trash.restoring import lock_trashed, return_to_user
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import Conflict, NotFound
from chatapp.operations.workers import jobs
from chatapp.realtime import event_log
from chatapp.realtime.hub import stop_runs_after_commit
from chatapp.recall.actions.indexing import unindex_conversations
from chatapp.runs.actions.endings import stop_answers

Reason = TrashedConversation.Reason
FRESH_FOR = timedelta(days=1)
"""A conversation restored within this time keeps its place in the list. If restored later, or if it would expire within
this time, it counts as used now, or the clean-up would take it again."""


@transaction.atomic
def trash_conversation(*, user: User, conversation_id: str, days: int, now: datetime) -> Removal:
    """Move a conversation to its user's trash, so that nothing else shows it after the commit. Raise NotFound, and
    Conflict if it is temporary or something in it is being forgotten."""
    conversation = lock_conversation(user, conversation_id)
    if conversation.temporary:
        raise Conflict("A temporary chat cannot go to the trash: delete it.")
    if has_more_to_forget(conversation):
        # A forgetting does not reach conversations without a user, so a restore would bring back the rest.
        raise Conflict(FORGOTTEN_MEANWHILE)
    return _trash(conversation, Reason.BY_HAND, days, now)


@transaction.atomic
def take_if_idle(conversation_id: UUID, *, idle_since: datetime, days: int, now: datetime) -> Removal | None:
    """Move an idle conversation to the trash for `days`; delete it if it is temporary or `days` is 0. Return None if it
    is in use after all, which is checked under the lock, or being forgotten."""
    conversation = lock_if_idle(conversation_id, idle_since)
    if conversation is None:
        return None
    if conversation.temporary or not days:
        return detach_conversation(conversation, now=now, forgets_memory=False)
    if has_more_to_forget(conversation):
        return None
    return _trash(conversation, Reason.IDLE, days, now)


def _trash(conversation: Conversation, reason: str, days: int, now: datetime) -> Removal:
    user_id = conversation.owner_id
    # Stop answers while the conversation still has a user, or they would seem unfinished for ever once restored.
    stop_runs_after_commit(stop_answers(conversation=conversation, now=now))
    # Before they are detached, because a restore returns them to the conversation.
    entries = MemoryEntry.objects.filter(conversation=conversation).order_by("pk")
    entry_ids = [str(pk) for pk in entries.values_list("pk", flat=True)]
    removal = detach_conversation(conversation, now=now, forgets_memory=False, keeps_rows=True)
    unindex_conversations(pk=conversation.pk)
    TrashedConversation.objects.create(
        conversation=conversation,
        user_id=user_id,
        reason=reason,
        entries=entry_ids,
        trashed_at=now,
        purge_at=now + timedelta(days=days),
    )
    return removal


@transaction.atomic
def restore_conversation(*, user: User, conversation_id: str | UUID, now: datetime) -> Conversation:
    """Return a conversation in the trash to its user. Raise NotFound, and Conflict if it is still being moved there."""
    row = lock_trashed(user, conversation_id, now)
    if row is None:
        raise NotFound
    is_old = row.reason == Reason.IDLE or now - row.trashed_at > FRESH_FOR
    conversation = return_to_user(row)
    days = retention_days_of(user.pk, current("RETENTION_DAYS"))
    expiry = expires_at(conversation, days)
    if is_old or (expiry is not None and expiry <= now + FRESH_FOR):
        conversation.last_activity_at = now
    event_log.append(conversation, updated_event(conversation, now), changed=["last_activity_at"])
    jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))
    return conversation


@transaction.atomic
def begin_purge(*, user: User, conversation_id: str | UUID, now: datetime) -> StartedForgetting | None:
    """Delete a conversation in the trash as if its user had just deleted it; None if it is not there."""
    begin_forgetting(user.pk)
    row = lock_trashed(user, conversation_id)
    if row is None:
        return None
    return_to_user(row, discards_removal=True)
    return forget_conversation(user=user, conversation_id=row.pk, now=now)


@transaction.atomic
def begin_idle_purge(*, user: User, conversation_id: str | UUID, now: datetime) -> Removal | None:
    """Delete a conversation that the clean-up moved to the trash; its memory entries stay. None if it is not there."""
    row = lock_trashed(user, conversation_id)
    if row is None or row.reason != Reason.IDLE:
        return None
    return detach_conversation(return_to_user(row, discards_removal=True), now=now, forgets_memory=False)


@transaction.atomic
def empty_trash(*, user: User, now: datetime) -> None:
    """Hide all conversations in the trash, and have a worker delete them as if by their user."""
    rows = TrashedConversation.objects.filter(user=user, purge_at__gt=now)
    if rows.update(purge_at=now, reason=Reason.BY_HAND):
        jobs.wake_worker("chatapp.forgetting.tasks.purge_trash", "")
