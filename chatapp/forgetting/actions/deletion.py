"""Takes conversations from their users. Their rows go in pieces (`removals`); what lies outside the database is
returned as leftovers, and `forgetting` removes it after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from chatapp.conversations.models import Conversation
from chatapp.forgetting.actions.removals import detach
from chatapp.forgetting.models import Removal
from chatapp.forgetting.selectors.derived import entries_going_with
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions import indexing as search_actions
from chatapp.runs.models import Run


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a deletion leaves on disk: daily files to write anew, hashes of bytes that may be unused now, and
    offloaded files."""

    user_id: UUID
    days: tuple[date, ...] = ()
    hashes: tuple[str, ...] = ()
    offloads: tuple[tuple[UUID, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Detached:
    """A conversation that is gone for everybody: the work that is left, what lies on disk, and the runs it had."""

    removal: Removal
    leftovers: Leftovers
    ended_runs: tuple[UUID, ...] = ()


def detach_conversation(
    conversation: Conversation, *, now: datetime, forget_memory: bool, **how: Any
) -> Detached:
    """Called in a transaction, with `conversation` locked. It is gone for everybody with that commit.

    Its memory entries outlive it unless `forget_memory`; their files are written anew in either case, because
    they name the conversation. `how` is as for `detach`.
    """
    user_id = conversation.owner_id
    own = MemoryEntry.objects.filter(conversation=conversation)
    entries = entries_going_with(conversation) if forget_memory else own
    # Before the index: who learns takes it while holding entries.
    held = list(entries.select_for_update().order_by("pk").values_list("pk", "day", "text"))
    days = tuple(sorted({day for _, day, _ in held}))
    memory_actions.mark_days_stale(user_id, days)
    if forget_memory:
        search_actions.remove_entries(user_id, [pk for pk, _, _ in held])
        MemoryEntry.objects.filter(pk__in=[pk for pk, _, _ in held]).delete()
    gone = {str(pk): text for pk, _, text in held} if forget_memory else {}
    removal, ended = detach(conversation, now=now, entries=gone, **how)
    return Detached(removal, Leftovers(user_id, days), tuple(ended))


@transaction.atomic
def detach_if_idle(conversation_id: UUID, *, idle_since: datetime, now: datetime) -> Detached | None:
    """Checks again under the lock that every new message takes first: None where it is not idle any more."""
    conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    if conversation is None or conversation.pinned or conversation.last_activity_at >= idle_since:
        return None
    if Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE).exists():
        return None
    return detach_conversation(conversation, now=now, forget_memory=False)
