"""Conversations: create, list, read, change, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router, Status
from ninja.params.functions import Query

from agents.hooks import Hook
from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.models import User
from chatapp.agent_presets.api import chosen_agent
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.context.policies import check_own_policy
from chatapp.context.tools.registry import tool_names
from chatapp.conversations import schemas
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.actions import create_conversation, update_conversation
from chatapp.conversations.models import Conversation
from chatapp.conversations.schemas import ConversationChanges, NewConversation
from chatapp.conversations.selectors import conversation_page, shape_conversation, shape_conversations
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http import schemas as http_schemas
from chatapp.operations.http.cursors import decode_cursor, encode_cursor
from chatapp.operations.text import normalize_text
from chatapp.providers.selectors import accessible_model
from memory.bounds import MAX_TITLE_CHARS, Cursor, PageSize
from memory.errors import PolicyError

router = Router(tags=["conversations"])


@router.post(
    "/conversations", auth=allow("chat"), response=http_schemas.answers(404, created=schemas.Conversation)
)
async def create(request: ApiRequest, new: NewConversation = NewConversation()) -> Any:
    return Status(201, await sync_to_async(_create)(request.auth, new))


def _create(caller: Caller, new: NewConversation) -> dict[str, Any]:
    user = caller.user
    model = accessible_model(new.model) if new.model else None
    agent = chosen_agent(user, new.agent)
    conversation = create_conversation(
        user=user,
        now=clock.now(),
        title=new.title,
        model=model,
        agent=agent,
        mode=new.mode or "",
        temporary=new.temporary,
        memory=new.memory,
        context_policy=_checked_policy(
            caller, Conversation(user=user, model=model, agent=agent), new.context_policy
        ),
        hooks=_checked_hooks(caller, new.hooks),
    )
    return shape_conversation(conversation)


def _checked_policy(
    caller: Caller, conversation: Conversation, policy: dict[str, Any] | None
) -> dict[str, Any]:
    """`conversation` is as it is about to be."""
    try:
        check_own_policy(conversation, policy or {}, is_operator=caller.is_operator)
    except PolicyError as error:
        details = [{"field": "context_policy", "message": str(error)}]
        raise InvalidInput(f"context_policy: {error}", details=details) from None
    return policy or {}


def _checked_hooks(caller: Caller, hooks: Sequence[Hook]) -> list[dict[str, Any]]:
    return check_declared(hooks, is_operator=caller.is_operator, tools=tool_names())


@router.get(
    "/conversations",
    auth=allow("chat", "read"),
    response=http_schemas.answers(ok=http_schemas.Page[schemas.Conversation]),
)
async def list_conversations(
    request: ApiRequest,
    q: str = Query("", max_length=MAX_TITLE_CHARS, description="Part of the title."),
    archived: bool = False,
    cursor: Cursor = None,
    limit: PageSize = 30,
) -> Any:
    """The most recently used first."""
    return await sync_to_async(_page)(request.auth.user, q, archived, cursor, limit)


def _page(user: User, query: str, archived: bool, cursor: str | None, limit: int) -> dict[str, Any]:
    rows, has_more = conversation_page(
        user,
        query=normalize_text(query, len(query)).strip(),
        archived=archived,
        cursor=decode_cursor(cursor),
        limit=limit,
    )
    next_cursor = encode_cursor(rows[-1].last_activity_at, rows[-1].pk) if has_more else None
    return {"items": shape_conversations(rows), "next_cursor": next_cursor}


@router.get(
    "/conversations/{conversation_id}",
    auth=allow("chat", "read"),
    response=http_schemas.answers(404, ok=schemas.Conversation),
)
async def read(request: ApiRequest, conversation_id: str) -> Any:
    """`last_seq` is where a reader of the events goes on from here."""
    return await sync_to_async(_read)(request.auth.user, conversation_id)


def _read(user: User, conversation_id: str) -> dict[str, Any]:
    return shape_conversation(accessible_conversation(user, conversation_id))


@router.patch(
    "/conversations/{conversation_id}",
    auth=allow("chat"),
    response=http_schemas.answers(404, ok=schemas.Conversation),
)
async def change(request: ApiRequest, conversation_id: str, changes: ConversationChanges) -> Any:
    """Only what is sent is changed. `memory: "paused"`: nothing said from now on is learned, and nothing known
    elsewhere is brought in. Null is the default: of `model`, `agent`, `mode`, `context_policy` and `hooks`.
    `context_policy`: the fields that are the user's, and for what costs money no more than the operator's own."""
    return await sync_to_async(_change)(request.auth, conversation_id, changes.sent())


def _change(caller: Caller, conversation_id: str, changes: dict[str, Any]) -> dict[str, Any]:
    user = caller.user
    if not changes:
        return _read(user, conversation_id)
    if "model" in changes:
        changes["model"] = accessible_model(changes["model"]) if changes["model"] else None
    if "agent" in changes:
        changes["agent"] = chosen_agent(user, changes["agent"])
    if "mode" in changes:
        changes["mode"] = changes["mode"] or ""
    if "context_policy" in changes:
        row = accessible_conversation(user, conversation_id)
        row.model, row.agent = changes.get("model", row.model), changes.get("agent", row.agent)
        changes["context_policy"] = _checked_policy(caller, row, changes["context_policy"])
    if "hooks" in changes:
        changes["hooks"] = _checked_hooks(caller, changes["hooks"] or [])
    row = update_conversation(user=user, conversation_id=conversation_id, changes=changes, now=clock.now())
    return shape_conversation(row)


@router.delete("/conversations/{conversation_id}", auth=allow("chat"), response=http_schemas.answers(404))
async def delete(request: ApiRequest, conversation_id: str) -> Any:
    """With everything in it: messages, summaries, attachments, and what memory kept of it. It cannot be undone."""
    await sync_to_async(forget_whole_conversation)(request.auth.user, conversation_id, now=clock.now())
    return Status(204, None)
