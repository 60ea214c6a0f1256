"""The API to list, create, change and delete prompts. Operators' prompts are read-only."""

from __future__ import annotations

from typing import Any

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.features.prompts.actions import create_prompt, delete_prompt, update_prompt
from chatapp.features.prompts.schemas import NewPrompt, Prompt, PromptChanges, prompt_shape
from chatapp.features.prompts.selectors import visible_prompt, visible_prompts
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["prompts"])


@router.get("/prompts", auth=allow("chat", "read"), response=answers(ok=Page[Prompt]))
def list_prompts(request: ApiRequest) -> Any:
    """List your prompts and those that operators offer to everybody, by name."""
    return {"items": [prompt_shape(row) for row in visible_prompts(request.auth.user)], "next_cursor": None}


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, read(request, made))


@router.post("/prompts", auth=allow("chat"), response=answers(409, created=Prompt))
@creates(_again, "/prompts/{made}")
def create(request: ApiRequest, new: NewPrompt) -> Any:
    """Create a prompt. In the composer, `/name` is replaced by its text."""
    return Status(201, prompt_shape(create_prompt(user=request.auth.user, **new.model_dump())))


@router.get("/prompts/{prompt_id}", auth=allow("chat", "read"), response=answers(404, ok=Prompt))
def read(request: ApiRequest, prompt_id: str) -> Any:
    return prompt_shape(visible_prompt(request.auth.user, prompt_id))


@router.patch("/prompts/{prompt_id}", auth=allow("chat"), response=answers(404, 409, ok=Prompt))
def change(request: ApiRequest, prompt_id: str, changes: PromptChanges) -> Any:
    """Change only the fields that are sent."""
    return prompt_shape(update_prompt(user=request.auth.user, prompt_id=prompt_id, **changes.sent()))


@router.delete("/prompts/{prompt_id}", auth=allow("chat"), response=answers(404))
def delete(request: ApiRequest, prompt_id: str) -> Any:
    delete_prompt(user=request.auth.user, prompt_id=prompt_id)
    return Status(204, None)
