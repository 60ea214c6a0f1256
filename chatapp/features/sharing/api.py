"""Share links: owners create and revoke them, everybody with a link can read, and signed-in users can copy."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Path, Query, Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.features.sharing.actions import add_images, copied_images, revoke_share, share_conversation
from chatapp.features.sharing.models import SharedConversation
from chatapp.features.sharing.selectors import (
    find_share,
    own_share,
    shared_conversation,
    shared_image,
    shared_images,
    shared_messages,
    token_of,
)
from chatapp.files.api import file_response
from chatapp.files.attachments import check_room
from chatapp.forgetting.selectors.forgotten import check_nothing_is_being_forgotten
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.database.forgetting_counts import (
    check_forgetting_count,
    read_forgetting_count,
    until_nothing_is_forgotten,
)
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Moment, Page, Shape, answers
from memory.bounds import MAX_ID, MAX_ID_CHARS, UtcMoment

router = Router(tags=["sharing"])


class ShareIn(Body):
    expires_at: UtcMoment | None = Field(
        None, description="When the link ends, at most in the year 2999; null: never."
    )


class Share(Shape):
    url: str = Field(description="The page; relative to this server.")
    token: str
    created_at: Moment = Field(description="The conversation is shown as it was then.")
    expires_at: Moment | None


class SharedMessage(Shape):
    id: str
    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]]
    status: str
    model: str | None
    created_at: Moment


class SharedPage(Page[SharedMessage]):
    title: str
    created_at: Moment


class Copy(Shape):
    id: str


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = own_share(request.auth.user, values["conversation_id"])
    return Status(201, _shape(row))


@router.post(
    "/conversations/{conversation_id}/share",
    auth=allow("chat"),
    response=answers(404, ok=Share, created=Share),
)
@creates(_again, "/conversations/{conversation_id}/share")
def share(request: ApiRequest, conversation_id: str, wish: ShareIn = ShareIn()) -> Any:
    """Create a link to the conversation in its present state. A second call keeps the link and updates what it shows. A
    link never shows memory, recalled text, tools, traces or other branches."""
    now = clock.now()
    if wish.expires_at is not None and wish.expires_at <= now:
        problem = "is not in the future"
        raise InvalidInput.in_field("expires_at", problem, f"expires_at {problem}.")
    row, is_new = share_conversation(
        user=request.auth.user, conversation_id=conversation_id, expires_at=wish.expires_at, now=now
    )
    return Status(201 if is_new else 200, _shape(row))


def _shape(row: SharedConversation) -> dict[str, Any]:
    token = token_of(row.pk)
    return {
        "url": f"/s/{token}",
        "token": token,
        "created_at": iso_time(row.created_at),
        "expires_at": iso_time(row.expires_at),
    }


@router.get(
    "/conversations/{conversation_id}/share",
    auth=allow("chat", "read"),
    response=answers(404, ok=Share | None),
)
def read_share(request: ApiRequest, conversation_id: str) -> Any:
    """Show the link; null if there is none."""
    row = find_share(request.auth.user, conversation_id)
    return _shape(row) if row else None


@router.delete("/conversations/{conversation_id}/share", auth=allow("chat"), response=answers(404))
def revoke(request: ApiRequest, conversation_id: str) -> Any:
    """Revoke the link, which is invalid from then on."""
    revoke_share(row=own_share(request.auth.user, conversation_id))
    return Status(204, None)


@router.get("/shared/{token}", auth=None, response=answers(404, ok=SharedPage))
def read(
    request: ApiRequest,
    token: str,
    response: HttpResponse,
    after: Annotated[int, Query(ge=-1, le=MAX_ID)] = -1,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Any:
    """Show the shared messages, oldest first, to everybody who has the link. `next_cursor` is the next `after`."""
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Cache-Control"] = "private, no-store"
    row = shared_conversation(token, clock.now())
    found = list(shared_messages(row).filter(position__gt=after).order_by("position")[: limit + 1])
    return {
        "title": row.title,
        "created_at": iso_time(row.created_at),
        "items": [_message_shape(message, token) for message in found[:limit]],
        "next_cursor": str(found[limit - 1].position) if len(found) > limit else None,
    }


def _message_shape(row: Message, token: str) -> dict[str, Any]:
    shown = [part for part in row.parts if part["type"] in ("text", "image")]
    parts = [
        part
        if part["type"] == "text"
        else {
            "type": "image",
            # Use the link's own URL, because the reader may have no session.
            "url": f"/api/v1/shared/{token}/images/{part['file_id']}",
            "width": part.get("width", 0),
            "height": part.get("height", 0),
        }
        for part in shown
    ]
    has_images = any(part["type"] == "image" for part in parts)
    return {
        "id": str(row.pk),
        "role": row.role,
        "content": parts if has_images else text_of(parts),
        "status": row.status,
        "model": row.model_name or None,
        "created_at": iso_time(row.created_at),
    }


@router.get("/shared/{token}/images/{image}", auth=None, response=answers(404, ok=None))
def show_image(request: ApiRequest, token: str, image: Annotated[str, Path(max_length=MAX_ID_CHARS)]) -> Any:
    """Show an image of a shared message."""
    response = file_response(shared_image(shared_conversation(token, clock.now()), image))
    # A revoked link must not show anything, not even from a cache.
    response["Cache-Control"] = "private, no-store"
    response["X-Robots-Tag"] = "noindex"
    return response


def _copy_again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = accessible_conversation(request.auth.user, made)
    return Status(201, {"id": str(row.pk)})


def _is_said(part: dict[str, Any]) -> bool:
    return part["type"] == "image" or (part["type"] == "text" and bool(part["text"]))


@router.post("/shared/{token}/copy", auth=allow("chat"), response=answers(404, 409, created=Copy))
@creates(_copy_again, "/conversations/{made}")
def copy(request: ApiRequest, token: str) -> Any:
    """Create a conversation of your own that begins with the shared messages."""
    return Status(201, {"id": str(until_nothing_is_forgotten(partial(_copy, request.auth.user, token)).pk)})


def _copy(user: User, token: str) -> Conversation:
    """Raise ReadForgotten if something was forgotten during the copy."""
    source = shared_conversation(token, clock.now()).conversation
    forgetting_keys = source.forgetting_keys
    forgotten_count = read_forgetting_count(forgetting_keys)
    check_nothing_is_being_forgotten(source.owner_id)
    # Read the share after the count: its title, too, may contain what is being forgotten right now.
    shared = shared_conversation(token, clock.now())
    # Check before storing messages, or the copy would miss an image that does not fit.
    images = list(shared_images(shared))
    check_room(user, sum(image.size_bytes for image in images))
    # A forgotten message leaves only its position.
    rows = [row for row in shared_messages(shared).order_by("position") if any(map(_is_said, row.parts))]
    messages = [ImportedMessage(row.role, text_of(row.parts), row.created_at) for row in rows]
    with_images = {
        position: [part for part in row.parts if part["type"] in ("text", "image")]
        for position, row in enumerate(rows)
        if any(part["type"] == "image" for part in row.parts)
    }
    with copied_images(images, user=user) as copies:
        return import_conversation(
            user=user,
            messages=messages,
            now=clock.now(),
            title=shared.title,
            # A model's title derives from these messages, and is forgotten with them.
            columns={} if shared.title_made_of is None else {"title_made_of": max(0, len(rows) - 1)},
            check=partial(check_forgetting_count, forgetting_keys, forgotten_count),
            complete=partial(add_images, copies=copies, parts=with_images),
        )
