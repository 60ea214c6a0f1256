"""What a user takes away: conversations page by page, and all that stands beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Prefetch, QuerySet

from chatapp import row_shapes
from chatapp.models import (
    Agent,
    Attachment,
    Branch,
    Conversation,
    ForgetReceipt,
    MemoryEntry,
    Message,
    Offload,
    ProfileVersion,
    Usage,
    User,
)
from chatapp.selectors.access import shown_attachments
from chatapp.selectors.conversations import compaction_list
from chatapp.selectors.pieces import with_stored_pieces

PAGE = 500
USAGE_COLUMNS = (
    "created_at",
    "model_name",
    "purpose",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost",
    "conversation_id",
)


def export_pages(messages: QuerySet[Message]) -> Iterator[list[dict[str, Any]]]:
    """By position, with their attachments' metadata."""
    attachments = Prefetch("attachments", Attachment.objects.order_by("created_at", "pk"))
    position = -1
    while True:
        rows = list(
            messages.filter(position__gt=position).order_by("position").prefetch_related(attachments)[:PAGE]
        )
        if not rows:
            return
        yield [_exported(row) for row in with_stored_pieces(rows)]
        position = rows[-1].position


def _exported(row: Message) -> dict[str, Any]:
    attachments = [mapping_of_attachment(attachment) for attachment in row.attachments.all()]
    return {**row_shapes.message_shape(row), "attachments": attachments}


def mapping_of_attachment(attachment: Any) -> dict[str, Any]:
    return {
        "id": str(attachment.pk),
        "name": attachment.name,
        "mime_type": attachment.mime_type,
        "width": attachment.width,
        "height": attachment.height,
        "size_bytes": attachment.size_bytes,
        "sha256": attachment.sha256,
    }


def exported_compactions(branch: Branch) -> list[dict[str, Any]]:
    return [row for row in compaction_list(branch) if row["status"] == "done"]


# --- All of a user's --------------------------------------------------------------------------------------


def own_conversations(user: User) -> Iterator[Conversation]:
    """Oldest first, temporary ones too."""
    rows = Conversation.objects.filter(user=user).select_related("model", "agent", "scope", "branch", "user")
    return rows.order_by("created_at", "pk").iterator(chunk_size=PAGE)


def own_attachments(user: User) -> Iterator[Attachment]:
    return shown_attachments(user.pk).order_by("pk").iterator(chunk_size=PAGE)


def own_offloads(user: User) -> Iterator[Offload]:
    return Offload.objects.filter(conversation__user=user).order_by("pk").iterator(chunk_size=PAGE)


def own_agents(user: User) -> list[Agent]:
    return list(Agent.objects.filter(owner=user).select_related("model").order_by("name"))


def own_entries(user: User) -> Iterator[MemoryEntry]:
    """Those that wait for approval, too; with what they said before."""
    rows = MemoryEntry.objects.filter(user=user).select_related("scope")
    return rows.prefetch_related("sources", "revisions").order_by("created_at", "pk").iterator(PAGE)


def own_profile_versions(user: User) -> list[ProfileVersion]:
    return list(ProfileVersion.objects.filter(profile__user=user).order_by("number"))


def own_receipts(user: User) -> list[ForgetReceipt]:
    return list(ForgetReceipt.objects.filter(user=user).order_by("at", "pk"))


def own_usage(user: User) -> Iterator[tuple[Any, ...]]:
    """USAGE_COLUMNS of each model call, oldest first."""
    rows = Usage.objects.filter(user=user).order_by("created_at", "pk")
    return rows.values_list(*USAGE_COLUMNS).iterator(chunk_size=PAGE)
