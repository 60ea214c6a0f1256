"""Conversations: create, list, read, change, delete."""

from __future__ import annotations

from typing import Annotated, Any, cast

from asgiref.sync import sync_to_async
from ninja import Router, Status
from ninja.params.functions import Query

from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
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
from chatapp.operations.http.schemas import Page, answers
from chatapp.operations.text import normalize_text
from chatapp.providers.selectors import accessible_model
from memory.bounds import MAX_TITLE_CHARS, Cursor, Id, PageSize
from memory.errors import PolicyError

router = Router(tags=["conversations"])


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = await sync_to_async(accessible_conversation)(request.auth.user, made)
    return Status(201, await sync_to_async(full_conversation)(row))


@router.post("/conversations", auth=allow("chat"), response=answers(404, created=Conversation))
@creates(_again, "/conversations/{made}")
async def create(request: ApiRequest, new: NewConversation = NewConversation()) -> Any:
    return Status(201, await sync_to_async(_create)(request.auth, new))


def _create(caller: Caller, new: NewConversation) -> dict[str, Any]:
    fields = {name: getattr(new, name) for name in type(new).model_fields}
    columns = _checked(caller, models.Conversation(user=caller.user), fields)
    if (folder := columns.get("folder")) is not None and new.agent is None:
        columns["agent"] = usable_agent(folder.agent, caller.user.pk)
    return full_conversation(create_conversation(user=caller.user, now=clock.now(), **columns))


def _checked(caller: Caller, row: models.Conversation, fields: dict[str, Any]) -> ConversationColumns:
    """Return the fields sent as columns of the row. Raise InvalidInput, and NotFound for a model or agent."""
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
    """Check the policy of a row that has its new model and agent already."""
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
async def list_conversations(
    request: ApiRequest,
    q: str = Query("", max_length=MAX_TITLE_CHARS, description="Part of the title."),
    archived: bool = False,
    folder: Annotated[
        Id | None, Query(description="The id of a folder; `none`: what is in no folder.")
    ] = None,
    attention: Annotated[bool, Query(description="Only what is unread or waits for your approval.")] = False,
    cursor: Cursor = None,
    limit: PageSize = 30,
) -> Any:
    """List conversations, the most recently used first."""
    return await sync_to_async(_page)(request.auth.user, q, archived, folder, attention, cursor, limit)


def _page(
    user: User,
    query: str,
    archived: bool,
    folder_id: str | None,
    attention: bool,
    cursor: str | None,
    limit: int,
) -> dict[str, Any]:
    folder = folder_id and (NO_FOLDER if folder_id == NO_FOLDER else accessible_folder(user, folder_id))
    rows, has_more = conversation_page(
        user,
        query=normalize_text(query, len(query)).strip(),
        archived=archived,
        folder=folder or None,
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
async def read(request: ApiRequest, conversation_id: str) -> Any:
    """Show a conversation. `last_seq` is where a reader of its events begins to follow it."""
    return await sync_to_async(_read)(request.auth.user, conversation_id)


def _read(user: User, conversation_id: str) -> dict[str, Any]:
    return full_conversation(accessible_conversation(user, conversation_id))


@router.patch(
    "/conversations/{conversation_id}",
    auth=allow("chat"),
    response=answers(404, ok=Conversation),
)
async def change(request: ApiRequest, conversation_id: str, changes: ConversationChanges) -> Any:
    """Change the fields that are sent. `memory: "paused"`: nothing said from now on is learned, and nothing known
    elsewhere is brought in. Null restores the default of `model`, `agent`, `folder` (none), `mode`, `context_policy`
    and `hooks`. `context_policy` takes the fields that users may set; where they cost money, no more than the
    operator's value."""
    return await sync_to_async(_change)(request.auth, conversation_id, changes.sent())


def _change(caller: Caller, conversation_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    row = accessible_conversation(caller.user, conversation_id)
    if not fields:
        return full_conversation(row)
    columns = _checked(caller, row, fields)
    row = update_conversation(user=caller.user, conversation_id=conversation_id, now=clock.now(), **columns)
    return full_conversation(row)


@router.post("/conversations/{conversation_id}/read", auth=allow("chat"), response=answers(404))
async def read_up_to(request: ApiRequest, conversation_id: str, shown: ReadIn) -> Any:
    """Mark the messages that you were shown as read, on all your devices. Messages that came since then stay unread."""
    await sync_to_async(mark_read)(
        user=request.auth.user,
        conversation_id=conversation_id,
        message_count=shown.message_count,
        now=clock.now(),
    )
    return Status(204, None)


@router.delete("/conversations/{conversation_id}", auth=allow("chat"), response=answers(404))
async def delete(request: ApiRequest, conversation_id: str) -> Any:
    """Delete the conversation with everything in it: messages, summaries, attachments, and what memory kept of it. This
    cannot be undone."""
    await sync_to_async(forget_whole_conversation)(request.auth.user, conversation_id, now=clock.now())
    return Status(204, None)
