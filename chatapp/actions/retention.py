"""Deletes conversations with all that hangs on them. What lies outside the database is returned as leftovers:
`forgetting` removes it after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.db import transaction

from chatapp.actions import memory as memory_actions
from chatapp.actions import search as search_actions
from chatapp.actions.purging import mark_purge
from chatapp.models import Attachment, Conversation, Event, MemoryEntry, Run


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a deletion leaves on disk: daily files to write anew, hashes of bytes that may be unused now, and
    what was offloaded: of whole conversations, and single files."""

    user_id: UUID
    days: tuple[date, ...] = ()
    hashes: tuple[str, ...] = ()
    conversations: tuple[UUID, ...] = ()
    offloads: tuple[tuple[UUID, str], ...] = ()


def _delete_attachments(conversation: Conversation) -> tuple[str, ...]:
    """Those that no message of another conversation shows."""
    links = Attachment.messages.through.objects
    here = links.filter(message__conversation=conversation).values("attachment")
    elsewhere = links.exclude(message__conversation=conversation).values("attachment")
    own = Attachment.objects.filter(pk__in=here).exclude(pk__in=elsewhere)
    hashes = tuple(own.values_list("sha256", flat=True))
    own.delete()
    return hashes


@transaction.atomic
def delete_conversation_data(conversation: Conversation, *, forget_memory: bool) -> Leftovers:
    """The conversation, its messages, events, checkpoints, attachments and index documents.

    Its memory entries outlive it unless `forget_memory`; their files are written anew in either case, because
    they name the conversation.
    """
    locked = Conversation.objects.select_for_update().filter(pk=conversation.pk).first()
    if locked is None:
        return Leftovers(user_id=conversation.user_id)
    mark_purge()
    entries = MemoryEntry.objects.filter(conversation=locked)
    # Before the index: who learns takes it while holding entries.
    held = list(entries.select_for_update().order_by("pk").values_list("pk", "day"))
    days = tuple(sorted({day for _, day in held}))
    memory_actions.mark_days_stale(locked.user_id, days)
    if forget_memory:
        search_actions.remove_entries(locked.user_id, [pk for pk, _ in held])
        entries.delete()
    search_actions.remove_conversation(locked)
    hashes = _delete_attachments(locked)
    Event.objects.filter(conversation=locked).delete()
    locked.delete()
    return Leftovers(locked.user_id, days, hashes, conversations=(conversation.pk,))


@transaction.atomic
def delete_if_idle(conversation_id: UUID, *, idle_since: datetime) -> Leftovers | None:
    """Checks again under the lock that every new message takes first: None where it is not idle any more."""
    conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    if conversation is None or conversation.pinned or conversation.last_activity_at >= idle_since:
        return None
    if Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE).exists():
        return None
    return delete_conversation_data(conversation, forget_memory=False)
