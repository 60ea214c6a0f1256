"""Conversations: create, list, read, change, delete."""

from __future__ import annotations

from typing import Annotated, Any, cast

from ninja import Status
from ninja.params.functions import Query

from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.idempotency import creates
from chatapp.agent_presets.api import chosen_agent
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.agent_presets.selectors import usable_agent
from chatapp.context.policies import check_own_policy
from chatapp.context.tools.registry import tool_names
from chatapp.conversations import models
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.actions.conversations import (
    ConversationColumns,
    create_conversation,
    mark_read,
    update_conversation,
)
from chatapp.conversations.folders.selectors import accessible_folder
from chatapp.conversations.schemas.conversations import (
    Conversation,
    ConversationChanges,
    NewConversation,
    ReadIn,
)
from chatapp.conversations.selectors.conversations import (
    NO_FOLDER,
    conversation_page,
    full_conversation,
    full_conversations,
)
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.cursors import decode_cursor, encode_cursor
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from chatapp.providers.selectors import accessible_model
from memory.bounds import MAX_TITLE_CHARS, Cursor, Id, PageSize
from memory.errors import PolicyError
from memory.window.policy import drop_overridden_aliases

router = Router(tags=["conversations"])


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, read(request, made))


@router.post("/conversations", auth=allow("chat"), response=answers(404, created=Conversation))
@creates(_again, "/conversations/{made}")
def create(request: ApiRequest, new: NewConversation = NewConversation()) -> Any:
    caller = request.auth
    fields = {name: getattr(new, name) for name in type(new).model_fields}
    columns = _checked(caller, models.Conversation(user=caller.user), fields)
    if (folder := columns.get("folder")) is not None and new.agent is None:
        columns["agent"] = usable_agent(folder.agent, caller.user.pk)
    row = create_conversation(user=caller.user, now=clock.now(), **columns)
    return Status(201, full_conversation(row))


def _checked(caller: Caller, row: models.Conversation, fields: dict[str, Any]) -> ConversationColumns:
    """Return the validated fields as columns. Raise InvalidInput, and NotFound for a model, agent or folder."""
    columns = cast(ConversationColumns, dict(fields))
    if "model" in fields:
        row.model = columns["model"] = (
            accessible_model(caller.user.pk, fields["model"]) if fields["model"] else None
        )
    if "agent" in fields:
        row.agent = columns["agent"] = chosen_agent(caller.user, fields["agent"])
    if "folder" in fields:
        columns["folder"] = accessible_folder(caller.user, fields["folder"]) if fields["folder"] else None
    if "mode" in fields:
        columns["mode"] = fields["mode"] or ""
    if "context_policy" in fields:
        columns["context_policy"] = _checked_policy(caller, row, fields["context_policy"] or {})
    if "hooks" in fields:
        columns["hooks"] = check_declared(
            fields["hooks"] or [], is_operator=caller.is_operator, tools=tool_names()
        )
    return columns


def _checked_policy(caller: Caller, row: models.Conversation, policy: dict[str, Any]) -> dict[str, Any]:
    """Return the validated policy. The row must have its new model and agent already."""
    policy = drop_overridden_aliases(policy, row.context_policy)
    try:
        check_own_policy(row, policy, is_operator=caller.is_operator)
    except PolicyError as error:
        details = [{"field": "context_policy", "message": str(error)}]
        raise InvalidInput(f"context_policy: {error}", details=details) from None
    return policy


@router.get(
    "/conversations",
    auth=allow("chat", "read"),
    response=answers(404, ok=Page[Conversation]),
)
def list_conversations(
    request: ApiRequest,
    q: str = Query("", max_length=MAX_TITLE_CHARS, description="Part of the title."),
    archived: bool = False,
    folder: Annotated[
        Id | None, Query(description="The id of a folder; `none`: conversations in no folder.")
    ] = None,
    attention: Annotated[
        bool, Query(description="Only conversations that are unread or wait for your approval.")
    ] = False,
    cursor: Cursor = None,
    limit: PageSize = 30,
) -> Any:
    """List conversations, the most recently used first, without temporary ones."""
    user = request.auth.user
    chosen = folder and (NO_FOLDER if folder == NO_FOLDER else accessible_folder(user, folder))
    rows, has_more = conversation_page(
        user,
        query=q,
        archived=archived,
        folder=chosen or None,
        attention=attention,
        cursor=decode_cursor(cursor),
        limit=limit,
    )
    next_cursor = encode_cursor(rows[-1].last_activity_at, rows[-1].pk) if has_more else None
    return {"items": full_conversations(rows), "next_cursor": next_cursor}


@router.get(
    "/conversations/{conversation_id}",
    auth=allow("chat", "read"),
    response=answers(404, ok=Conversation),
)
def read(request: ApiRequest, conversation_id: str) -> Any:
    """Return a conversation. To follow its events, start after `last_seq`."""
    return full_conversation(accessible_conversation(request.auth.user, conversation_id))


@router.patch(
    "/conversations/{conversation_id}",
    auth=allow("chat"),
    response=answers(404, ok=Conversation),
)
def change(request: ApiRequest, conversation_id: str, changes: ConversationChanges) -> Any:
    """Change the given fields. `memory: "paused"`: nothing said from now on is learned, and nothing remembered is used.
    Null restores the default of `model`, `agent`, `folder` (none), `mode`, `context_policy` and `hooks`.
    `context_policy` accepts the fields that users may set; those that cost money are limited to the operator's value.
    """
    caller, fields = request.auth, changes.sent()
    row = accessible_conversation(caller.user, conversation_id)
    if not fields:
        return full_conversation(row)
    columns = _checked(caller, row, fields)
    row = update_conversation(user=caller.user, conversation_id=conversation_id, now=clock.now(), **columns)
    return full_conversation(row)


@router.post("/conversations/{conversation_id}/read", auth=allow("chat"), response=answers(404))
def read_up_to(request: ApiRequest, conversation_id: str, shown: ReadIn) -> Any:
    """Mark the messages shown so far as read, on all your devices. Later messages stay unread."""
    mark_read(
        user=request.auth.user,
        conversation_id=conversation_id,
        message_count=shown.message_count,
        now=clock.now(),
    )
    return Status(204, None)


@router.delete("/conversations/{conversation_id}", auth=allow("chat"), response=answers(404))
def delete(request: ApiRequest, conversation_id: str) -> Any:
    """Delete the conversation with its messages, summaries, attachments and memory entries. This cannot be undone."""
    forget_whole_conversation(request.auth.user, conversation_id, now=clock.now())
    return Status(204, None)
