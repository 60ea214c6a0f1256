"""The one way to a row: by its id and the user who asks. Not yours is not found."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef, QuerySet

from chatapp.errors import NotFound
from chatapp.models import Attachment, Compaction, Conversation, MemoryEntry, Message, Offload, Run, User

Links = Attachment.messages.through

Row = TypeVar("Row", bound=models.Model)


def parse_id(raw: str | UUID) -> UUID:
    try:
        return raw if isinstance(raw, UUID) else UUID(raw)
    except ValueError:
        raise NotFound() from None


def _only(rows: QuerySet[Row], row_id: str | UUID) -> Row:
    row = rows.filter(pk=parse_id(row_id)).first()
    if row is None:
        raise NotFound()
    return row


def accessible_conversation(user: User, conversation_id: str | UUID) -> Conversation:
    rows = Conversation.objects.filter(user=user)
    rows = rows.select_related("model", "agent__model", "scope", "branch", "user")
    return _only(rows, conversation_id)


def lock_conversation(user: User, conversation_id: str | UUID) -> Conversation:
    """The row, held until the transaction ends: everything that counts or appends does so under it."""
    return _only(Conversation.objects.select_for_update().filter(user=user), conversation_id)


def accessible_message(user: User, conversation_id: str | UUID, message_id: str | UUID) -> Message:
    rows = Message.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return _only(rows, message_id)


def accessible_run(user: User, run_id: str | UUID) -> Run:
    return _only(Run.objects.filter(conversation__user=user), run_id)


def accessible_compaction(user: User, conversation_id: str | UUID, compaction_id: str | UUID) -> Compaction:
    rows = Compaction.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return _only(rows, compaction_id)


def accessible_entry(user: User, entry_id: str | UUID) -> MemoryEntry:
    return _only(
        MemoryEntry.objects.select_related("conversation", "user", "scope").filter(user=user), entry_id
    )


def lock_entry(user: User, entry_id: str | UUID) -> MemoryEntry:
    """Held until the transaction ends; its conversation first, as everywhere."""
    conversation_id = accessible_entry(user, entry_id).conversation_id
    if conversation_id:
        Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    return _only(MemoryEntry.objects.select_for_update().filter(user=user), entry_id)


def lock_shared_entry(entry_id: UUID) -> MemoryEntry:
    """For an operator: what is in an agent's shared memory, whoever said it. Locked like `lock_entry`."""
    shared = MemoryEntry.objects.filter(scope__isnull=False, state=MemoryEntry.State.KEPT)
    conversation_id = _only(shared, entry_id).conversation_id
    if conversation_id:
        Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    return _only(shared.select_for_update(), entry_id)


def accessible_offload(user: User, conversation_id: str | UUID, reference: str | UUID) -> Offload:
    rows = Offload.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return _only(rows, reference)


def shown_attachments(user_id: UUID) -> QuerySet[Attachment]:
    """Not those that only messages of deleted conversations show."""
    links = Links.objects.filter(attachment=OuterRef("pk"))
    is_shown = Exists(links.filter(message__conversation__user__isnull=False))
    return Attachment.objects.filter(is_shown | ~Exists(links), user=user_id)


def accessible_attachments(user: User, attachment_ids: list[str]) -> list[Attachment]:
    """In the order asked for; NotFound if one is missing."""
    ids = [parse_id(raw) for raw in attachment_ids]
    found = shown_attachments(user.pk).in_bulk(ids)
    if len(found) != len(set(ids)):
        raise NotFound("An attachment is missing: it was deleted, or it is not yours.")
    return [found[attachment_id] for attachment_id in ids]
