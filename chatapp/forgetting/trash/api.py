"""The API of the trash: moving a conversation there, listing, restoring, deleting for good."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.conversations.schemas.conversations import Conversation
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.forgetting.models import TrashedConversation
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.forgetting.trash.actions import empty_trash
from chatapp.forgetting.trash.selectors import trash_of
from chatapp.forgetting.trash.services import delete_from_trash, move_to_trash, restore
from chatapp.long_term.selectors.tombstones import tombstones_about
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Moment, Page, Shape, answers
from memory.bounds import Cursor, PageSize

router = Router(tags=["conversations"])


class Trashed(Shape):
    id: str
    title: str
    message_count: int
    reason: Literal["by_hand", "idle"]
    last_activity_at: Moment
    trashed_at: Moment
    purge_at: Moment


@router.post("/conversations/{conversation_id}/trash", auth=allow("chat"), response=answers(404, 409))
def trash(request: ApiRequest, conversation_id: str) -> Any:
    """Move a conversation to the trash: it can be restored for `TRASH_DAYS`, and nothing else shows it. Memory entries
    made of it are deleted when it is deleted for good. If the trash is off, it is deleted at once, as by `DELETE`."""
    if days := current("TRASH_DAYS"):
        move_to_trash(request.auth.user, conversation_id, days=days, now=clock.now())
    else:
        forget_whole_conversation(request.auth.user, conversation_id, now=clock.now())
    return Status(204, None)


@router.get("/trash", auth=allow("chat", "read"), response=answers(ok=Page[Trashed]))
def list_trash(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 30) -> Any:
    """List the conversations in the trash, deleted by you or cleaned up, newest first."""
    user = request.auth.user
    page = read_page(trash_of(user, clock.now()), "trashed_at", cursor, limit, _shape)
    forgotten = tombstones_about(user.pk, [shape["title"] for shape in page["items"]])
    for shape in page["items"]:
        shape["title"] = "" if forgotten.cover(shape["title"]) else shape["title"]
    return page


def _shape(row: TrashedConversation) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "title": row.conversation.title,
        "message_count": row.conversation.next_position,
        "reason": row.reason,
        "last_activity_at": iso_time(row.conversation.last_activity_at),
        "trashed_at": iso_time(row.trashed_at),
        "purge_at": iso_time(row.purge_at),
    }


@router.post(
    "/trash/{conversation_id}/restore", auth=allow("chat"), response=answers(404, 409, ok=Conversation)
)
def restore_from_trash(request: ApiRequest, conversation_id: str) -> Any:
    """Restore a conversation as it was, without what was forgotten meanwhile."""
    return full_conversation(restore(request.auth.user, conversation_id, now=clock.now()))


@router.delete("/trash/{conversation_id}", auth=allow("chat"), response=answers(404))
def delete_one(request: ApiRequest, conversation_id: str) -> Any:
    """Delete a conversation in the trash with everything in it, and its memory entries. This cannot be undone."""
    delete_from_trash(request.auth.user, conversation_id, now=clock.now())
    return Status(204, None)


@router.delete("/trash", auth=allow("chat"), response=answers())
def delete_all(request: ApiRequest) -> Any:
    """Delete all conversations in the trash, as if one by one. They are hidden at once; a worker deletes them."""
    empty_trash(user=request.auth.user, now=clock.now())
    return Status(204, None)
