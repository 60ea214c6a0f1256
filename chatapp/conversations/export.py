"""Exports conversations as JSON or Markdown, in pieces, with one page of a conversation in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from chatapp.accounts.archive import ArchiveFile, safe_file_name
from chatapp.accounts.models import User
from chatapp.conversations.branches import hidden_messages, visible_messages
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.conversations.selectors.messages import with_stored_pieces
from chatapp.files.models import Attachment
from chatapp.long_term.models import MemoryPause
from chatapp.operations import clock
from chatapp.operations.clock import iso_time

SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}
PAGE = 500

CompactionsOf = Callable[[Conversation], list[dict[str, Any]]]
"""Returns the shapes of a conversation's summaries. Passed in, because their package must not be imported here."""


def json_pieces(row: Conversation, compactions_of: CompactionsOf) -> Iterator[str]:
    """Yield one JSON object in pieces. `messages` are those of the shown branch, which an import reads;
    `other_versions` are those that only other branches show. `branches` maps branch ids to lineages, `memory_pauses`
    are the periods in which nothing was to be learned."""
    assert row.branch is not None
    head = {"format": "palimpsest", "version": 1, "exported_at": clock.now().isoformat()}
    branches = {str(branch.pk): branch.lineage for branch in row.branches.order_by("created_at", "pk")}
    head |= full_conversation(row) | {"branches": branches, "compactions": compactions_of(row)}
    head |= {"memory_pauses": _pauses(row)}
    # Leave the object open, because its messages are streamed into it.
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": ['
    yield from _joined(export_pages(visible_messages(row.branch)))
    yield '\n], "other_versions": ['
    yield from _joined(export_pages(hidden_messages(row.branch)))
    yield "\n]}\n"


def _pauses(row: Conversation) -> list[dict[str, str | None]]:
    """Return the pauses of the conversation and of the user's whole memory, which an import would not know."""
    rows = MemoryPause.objects.filter(Q(conversation=None) | Q(conversation=row), user=row.user_id)
    found = {(iso_time(pause.began_at), iso_time(pause.ended_at)) for pause in rows}
    in_order = sorted(found, key=lambda each: (each[0], each[1] or ""))
    return [{"began_at": began_at, "ended_at": ended_at} for began_at, ended_at in in_order]


def _joined(pages: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    separator = "\n"
    for messages in pages:
        yield separator + ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages)
        separator = ",\n"


def markdown_pieces(row: Conversation) -> Iterator[str]:
    """Yield the shown branch as Markdown."""
    assert row.branch is not None
    yield f"# {row.title or 'Conversation'}\n"
    for messages in export_pages(visible_messages(row.branch)):
        yield "".join(_section(message) for message in messages)


def _section(message: dict[str, Any]) -> str:
    heading = f"\n## {SPEAKERS[message['role']]}, {message['created_at']}\n\n"
    files = [_file(file) for file in message["attachments"]]
    note = "" if message["status"] == "complete" else f"\n\n*({message['status']})*"
    return heading + "\n\n".join([*files, _text(message["content"])]).strip() + note + "\n"


def _file(file: dict[str, Any]) -> str:
    if not file["mime_type"].startswith("image/"):
        return f"[file: {file['name']}]"
    return f"[image: {file['name']}, {file['width']} × {file['height']}]"


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def export_pages(messages: QuerySet[Message]) -> Iterator[list[dict[str, Any]]]:
    """Yield pages of messages by position, with the metadata of their attachments. Fix their ids at the start: an
    answer being written moves behind its new tool calls and would be in two pages. Later messages are left out."""
    attachments = Prefetch("attachments", Attachment.objects.order_by("created_at", "pk"))
    ids = list(messages.order_by("position").values_list("pk", flat=True))
    for start in range(0, len(ids), PAGE):
        rows = Message.objects.prefetch_related(attachments).in_bulk(ids[start : start + PAGE])
        if found := [rows[pk] for pk in ids[start : start + PAGE] if pk in rows]:
            yield [_exported(row) for row in with_stored_pieces(found)]


def _exported(row: Message) -> dict[str, Any]:
    attachments = [_attachment_shape(attachment) for attachment in row.attachments.all()]
    return {**message_shape(row), "branch": str(row.branch_id), "attachments": attachments}


def _attachment_shape(attachment: Attachment) -> dict[str, Any]:
    return {
        "id": str(attachment.pk),
        "name": attachment.name,
        "mime_type": attachment.mime_type,
        "width": attachment.width,
        "height": attachment.height,
        "size_bytes": attachment.size_bytes,
        "sha256": attachment.sha256,
    }


def conversation_files(user: User, compactions_of: CompactionsOf) -> Iterator[ArchiveFile]:
    """Yield a JSON file for each conversation of the user, temporary ones too, oldest first."""
    rows = Conversation.objects.filter(user=user).select_related("model", "agent", "scope", "branch", "user")
    for row in rows.order_by("created_at", "pk").iterator(chunk_size=PAGE):
        # The id makes the name unique, the title makes it findable.
        title = safe_file_name(row.title or "Conversation")
        name = f"{row.created_at.date().isoformat()} {title} {row.pk}"
        yield f"conversations/{name}.json", json_pieces(row, compactions_of)
