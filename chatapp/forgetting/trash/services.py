"""Moves conversations to the trash, restores them, and deletes them for good.

What was forgotten while a conversation was in the trash does not come back with it.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.conversations.selectors.conversations import idle_conversations
from chatapp.forgetting.actions.collecting import Chosen, begin_forgetting
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.models import ForgetReceipt, Removal, TrashedConversation
from chatapp.forgetting.removing import Removing, claim, work_on
from chatapp.forgetting.selectors.forgotten import FORGOTTEN_MEANWHILE
from chatapp.forgetting.services import finish_begun, finish_many, finish_removal
from chatapp.forgetting.trash import actions
from chatapp.forgetting.trash.restoring import lock_trashed
from chatapp.forgetting.trash.selectors import barred_messages, due_for_purge
from chatapp.long_term import files as memory_files
from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.operations.database.forgetting_counts import (
    check_forgetting_count,
    lock_forgetting_counts,
    read_forgetting_count,
)
from chatapp.operations.database.work_budget import IN_REQUEST, IN_WORKER, Pace
from chatapp.operations.errors import Conflict, NotFound, ReadForgotten


def move_to_trash(
    user: User, conversation_id: str, *, days: int, now: datetime, pace: Pace = IN_REQUEST
) -> None:
    """Move a conversation to the trash: only its user's trash shows it once this returns. Raise NotFound, and Conflict
    if it is temporary or something in it is being forgotten."""
    removal = actions.trash_conversation(user=user, conversation_id=conversation_id, days=days, now=now)
    finish_removal(removal, now, pace)


def restore(user: User, conversation_id: str, *, now: datetime) -> Conversation:
    """Return a conversation to its user, without what was forgotten meanwhile. Raise NotFound and Conflict."""
    row = lock_trashed(user, conversation_id, now, locks=False)
    if row is None:
        raise NotFound
    _finish_moving(row.pk, now)
    keys = Conversation.with_unowned.get(pk=row.pk).forgetting_keys_of(user.pk)
    count = read_forgetting_count(keys)
    barred = barred_messages(row)
    forgetting: Removing | None = None
    try:
        with transaction.atomic():
            if barred:
                # Lock the counts of both calls below in one order.
                lock_forgetting_counts([*keys, user.pk, *scopes_of(user.pk)])
            check_forgetting_count(keys, count)
            if barred:
                begin_forgetting(user.pk)
            conversation = actions.restore_conversation(user=user, conversation_id=row.pk, now=now)
            if barred:
                removal = begin_forgetting_many(
                    Chosen(user, now, frozenset(barred)), what=ForgetReceipt.What.CHOSEN
                )
                forgetting = Removing(removal, now)
                forgetting.hide()
    except ReadForgotten:
        raise Conflict(FORGOTTEN_MEANWHILE) from None
    if forgetting is not None:
        finish_many(forgetting)
    memory_files.sweep_unwritten()
    conversation.refresh_from_db()
    return conversation


def _finish_moving(conversation_id: UUID, now: datetime) -> None:
    """Finish moving a conversation to the trash, unless a worker holds the lease."""
    for removal in Removal.objects.filter(conversation_id=conversation_id, keeps_rows=True):
        work = claim(removal.pk, now=now)
        if work is not None:
            work.hide()
            work_on([work], IN_REQUEST)


def delete_from_trash(user: User, conversation_id: str | UUID, *, now: datetime) -> None:
    """Delete a conversation in the trash for good, with its memory entries. Raise NotFound."""
    begun = actions.begin_purge(user=user, conversation_id=conversation_id, now=now)
    if begun is None:
        raise NotFound
    finish_begun(begun, now, IN_REQUEST)


def clean_up_idle(*, now: datetime, days: int, trash_days: int, pace: Pace = IN_REQUEST) -> int:
    """Move conversations to the trash that have been idle for the period of their user's group, else for `days` (0 =
    never); delete them if `trash_days` is 0. Return how many."""
    count = 0
    for conversation_id, idle_since in idle_conversations(now, days):
        removal = actions.take_if_idle(conversation_id, idle_since=idle_since, days=trash_days, now=now)
        if removal is not None:
            finish_removal(removal, now, pace)
            count += 1
    return count


def purge_due(*, now: datetime) -> int:
    """Delete a batch of conversations that are due in the trash; return the size of the batch."""
    due = due_for_purge(now)
    for row in due:
        if row.reason == TrashedConversation.Reason.IDLE:
            removal = actions.begin_idle_purge(user=row.user, conversation_id=row.pk, now=now)
            if removal is not None:
                finish_removal(removal, now, IN_WORKER)
            continue
        begun = actions.begin_purge(user=row.user, conversation_id=row.pk, now=now)
        if begun is not None:
            finish_begun(begun, now, IN_WORKER)
    return len(due)
