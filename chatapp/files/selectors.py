"""Reads the rows of attachments and offloads, for one user."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from agents.tools.offloaded import CONTEXT_REFERENCE
from chatapp.accounts.models import User
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Branch, Conversation, Folder
from chatapp.files.models import Attachment, Offload
from chatapp.operations.database.access import find_row, parse_id, uuid_or_none
from chatapp.operations.errors import NotFound

Links = Attachment.messages.through
FolderLinks = Attachment.folders.through


def shown_attachments(user_id: UUID) -> QuerySet[Attachment]:
    """Return the user's uploads, without those that only messages of deleted conversations show."""
    links = Links.objects.filter(attachment=OuterRef("pk"))
    # Use EXISTS, because a join would return a file once for each message.
    is_shown = Exists(links.filter(message__conversation__user__isnull=False)) | Exists(
        FolderLinks.objects.filter(attachment=OuterRef("pk"))
    )
    # An upload without any link waits for its message to be sent.
    return Attachment.objects.filter(is_shown | ~Exists(links), user=user_id)


def accessible_offload(user: User, conversation_id: str | UUID, reference: str | UUID) -> Offload:
    rows = Offload.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return find_row(rows, reference)


def accessible_attachments(user: User, attachment_ids: list[str]) -> list[Attachment]:
    """Return attachments in the order of the ids. Raise NotFound if one is missing."""
    ids = [parse_id(raw) for raw in attachment_ids]
    found = shown_attachments(user.pk).in_bulk(ids)
    if len(found) != len(set(ids)):
        raise NotFound("An attachment is missing: it was deleted, or it is not yours.")
    return [found[attachment_id] for attachment_id in ids]


def known_ids(raw_ids: Iterable[str]) -> list[UUID]:
    """Return the ids of this service among these. References to other stores, e.g. of an operator, are none."""
    return [known for raw in raw_ids if (known := uuid_or_none(raw)) is not None]


def attachments_by_id(user_id: UUID, raw_ids: Iterable[str]) -> dict[str, Attachment]:
    """Return attachments by id, without ids that do not exist or belong to another user."""
    rows = shown_attachments(user_id).filter(pk__in=known_ids(raw_ids))
    return {str(row.pk): row for row in rows}


def stored_bytes(user_id: UUID) -> int:
    """Return the size of all uploads of a user; bytes that two uploads share count twice."""
    sizes = Attachment.objects.filter(user=user_id).aggregate(size=Sum("size_bytes", default=0))
    return int(sizes["size"])


def is_referenced(sha256: str) -> bool:
    return Attachment.objects.filter(sha256=sha256).exists()


def oldest_with_content(user_id: UUID, sha256: str) -> Attachment | None:
    """Return the user's oldest attachment with these bytes, which messages share."""
    return shown_attachments(user_id).filter(sha256=sha256).order_by("created_at", "id").first()


def attached_files(
    user_id: UUID | str, conversation_id: UUID | str, branch: Branch | None = None
) -> list[Attachment]:
    """Return this user's attachments on messages of this conversation and the files of its folder, oldest first. With
    `branch`, only attachments on messages that the branch shows."""
    here = Conversation.objects.filter(pk=parse_id(conversation_id), user_id=parse_id(user_id))
    links = Links.objects.filter(message__conversation__in=here)
    if branch is not None:
        links = links.filter(message__in=visible_messages(branch).values("pk"))
    attached = links.values("attachment")
    of_folder = FolderLinks.objects.filter(folder__in=here.values("folder")).values("attachment")
    rows = Attachment.objects.filter(Q(pk__in=attached) | Q(pk__in=of_folder), user_id=parse_id(user_id))
    return list(rows.order_by("created_at", "id"))


def messages_showing(rows: Iterable[Attachment], conversation_id: UUID | str) -> list[UUID]:
    """Return the ids of the messages of the conversation that show one of these files."""
    links = Links.objects.filter(attachment__in=rows, message__conversation=parse_id(conversation_id))
    return list(links.values_list("message", flat=True))


def files_of_folder(folder: Folder) -> list[Attachment]:
    """Return the files of the folder, which each of its conversations can use, oldest first."""
    return list(folder.files.order_by("created_at", "id"))


def offload_of(conversation_id: UUID | str, reference: str) -> Offload:
    """Return an offload of a conversation whose user was checked. Raise NotFound.

    CONTEXT_REFERENCE refers to the messages that left the context.
    """
    rows = Offload.objects.filter(conversation_id=parse_id(conversation_id))
    if reference == CONTEXT_REFERENCE:
        row = rows.filter(kind=Offload.Kind.CONTEXT).first()
    else:
        row = rows.filter(pk=parse_id(reference)).first()
    if row is None:
        raise NotFound("Nothing is stored under this reference in this conversation.")
    return row


def offloads_of(conversation_id: UUID | str) -> list[Offload]:
    """Return offloads of a conversation whose user was checked, oldest first."""
    return list(
        Offload.objects.filter(conversation_id=parse_id(conversation_id)).order_by("created_at", "pk")
    )


def known_offload_names(conversation_id: UUID) -> frozenset[str]:
    """Return the conversation's file names; none if it was deleted."""
    rows = Offload.objects.filter(conversation_id=conversation_id)
    return frozenset(rows.values_list("name", flat=True))
