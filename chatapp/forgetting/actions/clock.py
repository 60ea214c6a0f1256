"""Keeps forgetting and the claims of runs apart: a run is claimed before a forgetting, which then ends it where it may
have read what goes, or after it, when nothing of it can be read any more. What hooks read behind the end of a run is
kept by the same count. Consolidations of a profile are claimed before it or after it, too.

A user's clock is locked first, then those of the shared memories; `forget_reach` tells what follows.
"""

from __future__ import annotations

from uuid import UUID

from chatapp.conversations.models import Conversation
from chatapp.forgetting.actions.purging import mark_purge
from chatapp.forgetting.models import ForgetClock, ScopeClock
from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.operations.errors import ReadForgotten


def begin_forgetting(user_id: UUID) -> None:
    """The first statement of a transaction that forgets. Others read what this user added to a shared memory: their
    claims wait, too."""
    clocks: list[ForgetClock | ScopeClock] = [_lock(user_id), *map(_lock_scope, scopes_of(user_id))]
    for clock in clocks:
        clock.count += 1
        clock.save(update_fields=["count"])
    mark_purge()


def wait_for_forgetting(user_id: UUID) -> None:
    """The first statement of a transaction that claims work on what this user knows: what a forgetting that has begun
    takes away is not read any more."""
    _lock(user_id)
    for scope_id in scopes_of(user_id):
        _lock_scope(scope_id)


def check_nothing_forgotten(conversation: Conversation, count: int) -> None:
    """The first statement of a transaction that claims a run of it, or writes what was read there. Raises
    ReadForgotten."""
    known = _lock(conversation.owner_id).count
    if conversation.shared_in is not None:
        known += _lock_scope(conversation.shared_in).count
    if known != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def _lock(user_id: UUID) -> ForgetClock:
    clock, _ = ForgetClock.objects.select_for_update().get_or_create(user_id=user_id)
    return clock


def _lock_scope(shared_in: UUID) -> ScopeClock:
    clock, _ = ScopeClock.objects.select_for_update().get_or_create(shared_in=shared_in)
    return clock
