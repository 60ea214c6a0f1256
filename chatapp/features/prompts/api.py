"""Prompts: list, make, change, delete. Those of the operators are read only."""

from __future__ import annotations

from typing import Any, cast

from asgiref.sync import sync_to_async
from ninja import Router, Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.features.prompts.actions import PromptColumns, create_prompt, delete_prompt, update_prompt
from chatapp.features.prompts.schemas import NewPrompt, Prompt, PromptChanges, prompt_shape
from chatapp.features.prompts.selectors import visible_prompt, visible_prompts
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["prompts"])


@router.get("/prompts", auth=allow("chat", "read"), response=answers(ok=Page[Prompt]))
async def list_prompts(request: ApiRequest) -> Any:
    """List your prompts and those that operators offer to everybody, by name."""
    return await sync_to_async(_page)(request.auth.user)


def _page(user: User) -> dict[str, Any]:
    return {"items": [prompt_shape(row) for row in visible_prompts(user)], "next_cursor": None}


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, await sync_to_async(_read)(request.auth.user, made))


@router.post("/prompts", auth=allow("chat"), response=answers(409, created=Prompt))
@creates(_again, "/prompts/{made}")
async def create(request: ApiRequest, new: NewPrompt) -> Any:
    """Store a prompt: `/name` in the composer is replaced by its text."""
    return Status(201, await sync_to_async(_create)(request.auth.user, new))


def _create(user: User, new: NewPrompt) -> dict[str, Any]:
    return prompt_shape(create_prompt(user=user, **cast(PromptColumns, new.model_dump())))


@router.get("/prompts/{prompt_id}", auth=allow("chat", "read"), response=answers(404, ok=Prompt))
async def read(request: ApiRequest, prompt_id: str) -> Any:
    return await sync_to_async(_read)(request.auth.user, prompt_id)


def _read(user: User, prompt_id: str) -> dict[str, Any]:
    return prompt_shape(visible_prompt(user, prompt_id))


@router.patch("/prompts/{prompt_id}", auth=allow("chat"), response=answers(404, 409, ok=Prompt))
async def change(request: ApiRequest, prompt_id: str, changes: PromptChanges) -> Any:
    """Change the fields that are sent."""
    return await sync_to_async(_change)(request.auth.user, prompt_id, changes.sent())


def _change(user: User, prompt_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    return prompt_shape(update_prompt(user=user, prompt_id=prompt_id, **cast(PromptColumns, fields)))


@router.delete("/prompts/{prompt_id}", auth=allow("chat"), response=answers(404))
async def delete(request: ApiRequest, prompt_id: str) -> Any:
    await sync_to_async(delete_prompt)(user=request.auth.user, prompt_id=prompt_id)
    return Status(204, None)
