"""What an agent's tools gave that was too large for its context: by page, or as a whole."""

from __future__ import annotations

from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field

from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.models import Offload, User
from chatapp.offloads import PAGE_CHARS, read_content, read_text
from chatapp.selectors.access import accessible_offload
from memory.bounds import Position

router = Router(tags=["tools"])

MAX_PAGE_CHARS = 200_000
CONTENT = {
    "responses": {
        200: {
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("text/plain", "application/jsonl", "image/png", "image/jpeg", "image/webp")
            }
        }
    }
}


class OffloadPage(shapes.Shape):
    ref: str
    kind: str = Field(description="result, image or context.")
    tool: str = Field(description="The tool that gave it; empty for a context.")
    mime_type: str
    size_bytes: int
    total_chars: int | None = Field(description="null for an image.")
    offset: int
    text: str
    next_offset: int | None
    content_url: str = Field(description="The whole of it, as a file.")
    created_at: shapes.Moment


@router.get(
    "/conversations/{conversation_id}/offloads/{ref}",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=OffloadPage),
)
async def read_page(
    request: ApiRequest,
    conversation_id: str,
    ref: str,
    offset: Position = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_CHARS)] = PAGE_CHARS,
) -> Any:
    """A page of an offloaded result; `next_offset` is null at its end. Of an image, what is known about it."""
    return await sync_to_async(_page)(request.auth.user, conversation_id, ref, offset, limit)


def _page(user: User, conversation_id: str, ref: str, offset: int, limit: int) -> dict[str, Any]:
    row = accessible_offload(user, conversation_id, ref)
    text = None if row.kind == Offload.Kind.IMAGE else read_text(row)
    page = (text or "")[offset : offset + limit]
    end = offset + len(page)
    return {
        "ref": str(row.pk),
        "kind": row.kind,
        "tool": row.tool_name,
        "mime_type": row.mime_type,
        "size_bytes": row.size_bytes,
        "total_chars": None if text is None else len(text),
        "offset": offset,
        "text": page,
        "next_offset": end if text is not None and page and end < len(text) else None,
        "content_url": f"/api/v1/conversations/{conversation_id}/offloads/{row.pk}/content",
        "created_at": row.created_at.isoformat().replace("+00:00", "Z"),
    }


@router.get(
    "/conversations/{conversation_id}/offloads/{ref}/content",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=None),
    openapi_extra=CONTENT,
)
async def read_whole(request: ApiRequest, conversation_id: str, ref: str) -> Any:
    """All of it: text as a download, an image to be shown."""
    return await sync_to_async(_content)(request.auth.user, conversation_id, ref)


def _content(user: User, conversation_id: str, ref: str) -> HttpResponse:
    row = accessible_offload(user, conversation_id, ref)
    is_image = row.kind == Offload.Kind.IMAGE
    response = HttpResponse(
        read_content(row), content_type=row.mime_type if is_image else f"{row.mime_type}; charset=utf-8"
    )
    # An image was written by ourselves; everything else is a stranger's words.
    disposition = "inline" if is_image else "attachment"
    response["Content-Disposition"] = f'{disposition}; filename="{row.name.rpartition("/")[2]}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, no-store"
    return response
