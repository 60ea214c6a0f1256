"""Shortcuts for calling models in tests, and sample requests and histories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents.errors import ModelError
from agents.requests.context import AssembledContext, ContextInputs
from agents.types import ChatModel, Finished, ModelItem, ModelRequest, ReasoningDelta, RequestSent, TextDelta
from memory.budget import TokenBudget
from memory.tokens import text_message
from memory.types import Checkpoint, Message
from memory.window.policy import ContextPolicy

SYSTEM = text_message("system", "You are a helpful assistant.")


def ask_for(text: str = "Hi", *before: Message, limit: int = 100) -> ModelRequest:
    return ModelRequest((SYSTEM, *before, text_message("user", text, kind="question")), limit)


async def collect(model: ChatModel, request: ModelRequest) -> tuple[list[ModelItem], ModelError | None]:
    """Return all items up to the end or the error, without RequestSent, and the error."""
    items: list[ModelItem] = []
    try:
        async for item in model.stream(request):
            if not isinstance(item, RequestSent):
                items.append(item)
    except ModelError as error:
        return items, error
    return items, None


async def collect_steps(steps: AsyncIterator[Any]) -> tuple[list[Any], ModelError | None]:
    seen: list[Any] = []
    try:
        async for step in steps:
            seen.append(step)
    except ModelError as error:
        return seen, error
    return seen, None


def text_of(items: Sequence[object]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


def reasoning_of(items: Sequence[object]) -> str:
    return "".join(item.text for item in items if isinstance(item, ReasoningDelta))


def end_of(items: Sequence[object]) -> Finished:
    [finished] = [item for item in items if isinstance(item, Finished)]
    assert items[-1] is finished
    return finished


def stored(position: int, text: str) -> Message:
    """Return the message at `position`: from the user if even, from the assistant if odd."""
    role = "user" if position % 2 == 0 else "assistant"
    message = text_message(role, text)  # type: ignore[arg-type]
    return Message(role, message.parts, message.tokens, id=f"m{position}", position=position)  # type: ignore[arg-type]


def history_of(count: int, words: int = 8) -> tuple[Message, ...]:
    return tuple(stored(position, f"Message {position} says " + "word " * words) for position in range(count))


def make_inputs(
    messages: Sequence[Message] = (),
    question: str = "What now?",
    *,
    window: int = 128_000,
    checkpoint: Checkpoint | None = None,
) -> ContextInputs:
    return ContextInputs(
        system=SYSTEM,
        checkpoint=checkpoint,
        messages=messages,
        question=text_message("user", question, kind="question", pinned=True),
        policy=ContextPolicy(),
        budget=TokenBudget(window, window // 4, 1_000),
    )


def assemble(inputs: ContextInputs) -> AssembledContext:
    return AssembledContext(inputs, inputs.fit())


async def no_tools(step: object) -> None:
    """Offer no tools to the steps of a plan."""
