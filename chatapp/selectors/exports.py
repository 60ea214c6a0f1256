"""A whole conversation, page by page, for taking it away."""

from __future__ import annotations

from typing import Any

from chatapp import mapping
from chatapp.models import Branch
from chatapp.selectors.branches import visible_messages
from chatapp.selectors.conversations import compaction_list

PAGE = 500


def export_page(branch: Branch, after_position: int) -> tuple[list[dict[str, Any]], int | None]:
    """The next messages of what the branch shows, with their attachments' metadata, and where to go on."""
    rows = list(
        visible_messages(branch, after_position).order_by("position").prefetch_related("attachments")[:PAGE]
    )
    shapes = [
        {
            **mapping.message_shape(row),
            "attachments": [mapping_of_attachment(attachment) for attachment in row.attachments.all()],
        }
        for row in rows
    ]
    return shapes, rows[-1].position if len(rows) == PAGE else None


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
