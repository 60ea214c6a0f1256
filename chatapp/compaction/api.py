"""The API of the context: what the model would see, and the summaries of earlier messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.idempotency import creates
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.compaction import schemas
from chatapp.compaction.actions.compactions import edit_summary, redo_compaction, undo_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.requests import clear_conversation, compact_now, preview_compaction
from chatapp.compaction.schemas import CompactRequest, SummaryChange
from chatapp.compaction.selectors import accessible_compaction, compaction_list
from chatapp.context import schemas as context_schemas
from chatapp.context.inspector import inspect_context
from chatapp.context.schemas import ContextQuestion
from chatapp.conversations.access import accessible_conversation
from chatapp.operations import clock
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from memory.tokens import estimate_text

router = Router(tags=["context"])


@router.post(
    "/conversations/{conversation_id}/context",
    auth=allow("chat", "read"),
    response=answers(404, ok=context_schemas.Inspection),
)
def inspect(request: ApiRequest, conversation_id: str, question: ContextQuestion = ContextQuestion()) -> Any:
    """Show exactly what the model would be sent with `query` as the next question. Calls no model, writes nothing."""
    return inspect_context(
        user=request.auth.user,
        conversation_id=conversation_id,
        query=question.query,
        budget_tokens=question.budget_tokens,
        model=question.model,
    )


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = accessible_compaction(request.auth.user, values["conversation_id"], made)
    return schemas.compaction_shape(row)


@router.post(
    "/conversations/{conversation_id}/compact",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction | schemas.CompactionPreview),
)
@creates(_again)
async def compact(
    request: ApiRequest, conversation_id: str, wanted: CompactRequest = CompactRequest()
) -> Any:
    """Summarise all but the newest messages now. With `wait`, the response comes when the summary is done; with
    `preview`, it describes what would be summarised and kept, and nothing is changed."""
    if wanted.preview:
        return await sync_to_async(preview_compaction)(
            user=request.auth.user, conversation_id=conversation_id, wanted=wanted
        )
    # Limited like messages, because a model is called.
    await check_message_rate(request.auth.user.pk, client_address(request))
    return await compact_now(user=request.auth.user, conversation_id=conversation_id, wanted=wanted)


@router.get(
    "/conversations/{conversation_id}/compactions",
    auth=allow("chat", "read"),
    response=answers(404, ok=Page[schemas.Compaction]),
)
def list_compactions(request: ApiRequest, conversation_id: str) -> Any:
    """List the summaries of the shown branch, oldest first."""
    branch = accessible_conversation(request.auth.user, conversation_id).branch
    assert branch is not None
    return {"items": compaction_list(branch), "next_cursor": None}


@router.patch(
    "/conversations/{conversation_id}/compactions/{compaction_id}",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
def change_summary(
    request: ApiRequest, conversation_id: str, compaction_id: str, change: SummaryChange
) -> Any:
    """Replace the text of the summary with your own."""
    words = {"summary": change.summary, "tokens": estimate_text(change.summary)}
    return _changed(edit_summary, request, conversation_id, compaction_id, **words)


def _changed(
    action: Callable[..., Compaction],
    request: ApiRequest,
    conversation_id: str,
    compaction_id: str,
    **more: Any,
) -> dict[str, Any]:
    row = action(
        user=request.auth.user,
        conversation_id=conversation_id,
        compaction_id=compaction_id,
        now=clock.now(),
        **more,
    )
    return schemas.compaction_shape(row)


@router.post(
    "/conversations/{conversation_id}/compactions/{compaction_id}/undo",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
def undo(request: ApiRequest, conversation_id: str, compaction_id: str) -> Any:
    """Undo the summary: its messages are in context again, exactly as before. Only the latest summary can be undone."""
    return _changed(undo_compaction, request, conversation_id, compaction_id)


@router.post(
    "/conversations/{conversation_id}/compactions/{compaction_id}/redo",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
def redo(request: ApiRequest, conversation_id: str, compaction_id: str) -> Any:
    """Restore a summary that was undone."""
    return _changed(redo_compaction, request, conversation_id, compaction_id)


@router.post(
    "/conversations/{conversation_id}/context/clear",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.Compaction),
)
@creates(_again)
def clear(request: ApiRequest, conversation_id: str) -> Any:
    """Begin a new context in the same conversation. Nothing is deleted, recall may still bring back earlier messages,
    and this can be undone."""
    return clear_conversation(request.auth.user, conversation_id)
