"""A conversation to take away, as JSON or Markdown, piece by piece: however long it is, a page of it is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Prefetch, QuerySet

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.selectors import compaction_list
from chatapp.conversations.access import shown_attachments
from chatapp.conversations.branches import hidden_messages, visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.conversations.selectors.messages import with_stored_pieces
from chatapp.files.models import Attachment, Offload
from chatapp.forgetting.models import ForgetReceipt
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.operations import clock
from chatapp.providers.models import Usage

SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def json_pieces(row: Conversation) -> Iterator[str]:
    """One object. `messages` is what it shows, and what the import takes; `other_versions` are what was edited or
    answered anew since."""
    assert row.branch is not None
    head = {"format": "palimpsest", "version": 1, "exported_at": clock.now().isoformat()}
    head |= full_conversation(row) | {"compactions": exported_compactions(row.branch)}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": ['
    yield from _listed(export_pages(visible_messages(row.branch)))
    yield '\n], "other_versions": ['
    yield from _listed(export_pages(hidden_messages(row.branch)))
    yield "\n]}\n"


def _listed(pages: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    separator = "\n"
    for messages in pages:
        yield separator + ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages)
        separator = ",\n"


def markdown_pieces(row: Conversation) -> Iterator[str]:
    assert row.branch is not None
    yield f"# {row.title or 'Conversation'}\n"
    for messages in export_pages(visible_messages(row.branch)):
        yield "".join(_section(message) for message in messages)


def _section(message: dict[str, Any]) -> str:
    heading = f"\n## {SPEAKERS[message['role']]}, {message['created_at']}\n\n"
    images = [
        f"[image: {file['name']}, {file['width']} × {file['height']}]" for file in message["attachments"]
    ]
    note = "" if message["status"] == "complete" else f"\n\n*({message['status']})*"
    return heading + "\n\n".join([*images, _text(message["content"])]).strip() + note + "\n"


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


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
    return {**message_shape(row), "attachments": attachments}


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
