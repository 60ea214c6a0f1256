"""What the model would see, and the summaries that stand for what it does not."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.compaction import schemas, shapes
from chatapp.compaction.actions import edit_summary, redo_compaction, undo_compaction
from chatapp.compaction.requests import clear_conversation, compact_now, preview_compaction
from chatapp.compaction.schemas import CompactRequest, SummaryChange
from chatapp.compaction.selectors import compaction_list
from chatapp.context import schemas as context_schemas
from chatapp.context.inspector import inspect_context
from chatapp.context.schemas import ContextQuestion
from chatapp.conversations.access import accessible_conversation
from chatapp.operations import clock
from chatapp.operations.http.schemas import Page, answers
from memory.tokens import estimate_text

router = Router(tags=["context"])


@router.post(
    "/conversations/{conversation_id}/context",
    auth=allow("chat", "read"),
    response=answers(404, ok=context_schemas.Inspection),
)
async def inspect(
    request: ApiRequest, conversation_id: str, question: ContextQuestion = ContextQuestion()
) -> Any:
    """Exactly what the model would be sent for `query` as the next question. Calls no model, writes nothing."""
    return await sync_to_async(inspect_context)(
        user=request.auth.user,
        conversation_id=conversation_id,
        query=question.query,
        budget_tokens=question.budget_tokens,
        model=question.model,
    )


@router.post(
    "/conversations/{conversation_id}/compact",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction | schemas.CompactionPreview),
)
async def compact(
    request: ApiRequest, conversation_id: str, wanted: CompactRequest = CompactRequest()
) -> Any:
    """Summarises all but the newest messages now. With `wait` the answer comes when the summary is done; with
    `preview` it tells what would be summarised and kept, and nothing happens."""
    if wanted.preview:
        return await sync_to_async(preview_compaction)(
            user=request.auth.user,
            conversation_id=conversation_id,
            keep=wanted.keep,
            strategy=wanted.strategy,
        )
    return await compact_now(
        user=request.auth.user,
        conversation_id=conversation_id,
        keep=wanted.keep,
        strategy=wanted.strategy,
        wait=wanted.wait,
    )


@router.get(
    "/conversations/{conversation_id}/compactions",
    auth=allow("chat", "read"),
    response=answers(404, ok=Page[schemas.Compaction]),
)
async def list_compactions(request: ApiRequest, conversation_id: str) -> Any:
    """Oldest first."""
    return {"items": await sync_to_async(_list)(request.auth.user, conversation_id), "next_cursor": None}


def _list(user: User, conversation_id: str) -> list[dict[str, Any]]:
    branch = accessible_conversation(user, conversation_id).branch
    assert branch is not None
    return compaction_list(branch)


@router.patch(
    "/conversations/{conversation_id}/compactions/{compaction_id}",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
async def change_summary(
    request: ApiRequest, conversation_id: str, compaction_id: str, change: SummaryChange
) -> Any:
    """Your words stand for these messages from now on."""
    return await sync_to_async(_change)(request.auth.user, conversation_id, compaction_id, change.summary)


def _change(user: User, conversation_id: str, compaction_id: str, summary: str) -> dict[str, Any]:
    row = edit_summary(
        user=user,
        conversation_id=conversation_id,
        compaction_id=compaction_id,
        summary=summary,
        tokens=estimate_text(summary),
        now=clock.now(),
    )
    return shapes.compaction_shape(row)


@router.post(
    "/conversations/{conversation_id}/compactions/{compaction_id}/undo",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
async def undo(request: ApiRequest, conversation_id: str, compaction_id: str) -> Any:
    """The messages are in context again, byte for byte as before. Only the latest summary can be undone."""
    row = await sync_to_async(undo_compaction)(
        user=request.auth.user,
        conversation_id=conversation_id,
        compaction_id=compaction_id,
        now=clock.now(),
    )
    return shapes.compaction_shape(row)


@router.post(
    "/conversations/{conversation_id}/compactions/{compaction_id}/redo",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
async def redo(request: ApiRequest, conversation_id: str, compaction_id: str) -> Any:
    """The summary that was undone stands again."""
    row = await sync_to_async(redo_compaction)(
        user=request.auth.user,
        conversation_id=conversation_id,
        compaction_id=compaction_id,
        now=clock.now(),
    )
    return shapes.compaction_shape(row)


@router.post(
    "/conversations/{conversation_id}/context/clear",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
async def clear(request: ApiRequest, conversation_id: str) -> Any:
    """A new context in the same conversation: nothing is deleted, and the clearing can be undone."""
    return await sync_to_async(clear_conversation)(request.auth.user, conversation_id)
