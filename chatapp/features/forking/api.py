"""The API that starts a new chat from any message of another."""

from __future__ import annotations

from typing import Any

from ninja import Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.schemas.conversations import Conversation
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.features.forking.actions import fork_conversation
from chatapp.operations import clock
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, answers
from memory.bounds import Id

router = Router(tags=["conversations"])


class ForkIn(Body):
    message_id: Id | None = Field(
        None, description="The last message to take along; null: all that is shown."
    )


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, full_conversation(accessible_conversation(request.auth.user, made)))


@router.post(
    "/conversations/{conversation_id}/fork",
    auth=allow("chat"),
    response=answers(404, 409, created=Conversation),
)
@creates(_again, "/conversations/{made}")
def fork(request: ApiRequest, conversation_id: str, wish: ForkIn = ForkIn()) -> Any:
    """Create a conversation with the messages of this one, up to one of them, and its settings. Tool calls and recalled
    text are not copied."""
    user = request.auth.user
    made = fork_conversation(
        user=user, source_id=conversation_id, message_id=wish.message_id, now=clock.now()
    )
    return Status(201, full_conversation(accessible_conversation(user, made.pk)))
