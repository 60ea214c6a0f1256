"""Reads attachments."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from chatapp.errors import NotFound
from chatapp.models import Attachment
from chatapp.selectors.access import parse_id, shown_attachments


def _known_ids(raw_ids: Iterable[str]) -> list[UUID]:
    known = []
    for raw in raw_ids:
        try:
            known.append(parse_id(raw))
        except NotFound:
            continue
    return known


def attachments_by_id(user_id: UUID, raw_ids: Iterable[str]) -> dict[str, Attachment]:
    """Those that exist and are this user's."""
    rows = shown_attachments(user_id).filter(pk__in=_known_ids(raw_ids))
    return {str(row.pk): row for row in rows}


def is_referenced(sha256: str) -> bool:
    return Attachment.objects.filter(sha256=sha256).exists()


def oldest_with_content(user_id: UUID, sha256: str) -> Attachment | None:
    """The same picture sent twice is one attachment to whoever compares two messages."""
    return shown_attachments(user_id).filter(sha256=sha256).order_by("created_at", "id").first()


def attached_files(user_id: UUID | str, conversation_id: UUID | str) -> list[Attachment]:
    """Of this user, on messages of this conversation, oldest first."""
    rows = Attachment.objects.filter(
        user_id=parse_id(user_id),
        messages__conversation_id=parse_id(conversation_id),
        messages__conversation__user_id=parse_id(user_id),
    )
    return list(rows.distinct().order_by("created_at", "id"))
