"""Measures what the conditions of hooks test: how far a conversation has come, and how full its context would be."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agents.chat_models.usage import count_tools
from agents.loop.hooks import TurnState, needs_turn_number
from chatapp.context.assembly import LoadedContext
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Message as MessageRow
from chatapp.runs.selectors import count_step_calls
from memory.summaries.reminder import reminder_message
from memory.summaries.summary import checkpoint_message
from memory.tokens import total_tokens
from memory.turns import starts_turn
from memory.types import Message


def measure_turn(loaded: LoadedContext, run_id: UUID | None = None) -> TurnState:
    """Return the state of a turn. Turns are counted, over the whole branch by index, only if a hook needs their number.

    `run_id` is the run of this turn, if it has begun.
    """
    inputs = loaded.inputs
    is_asked = not inputs.question.is_empty
    checkpoint = inputs.checkpoint
    frame = [inputs.system, *([inputs.profile] if inputs.profile else ())]
    if checkpoint:
        reminder = reminder_message(checkpoint.reminder)
        frame += [checkpoint_message(checkpoint), *([reminder] if reminder else ())]
    estimate = total_tokens(frame) + count_tools(inputs.tools)
    estimate += inputs.left_out.tokens + total_tokens(inputs.messages)
    tokens = loaded.rules.calibration.apply(estimate + (inputs.question.tokens if is_asked else 0))
    return TurnState(
        turn=_turn_number(loaded) if needs_turn_number(loaded.rules.hooks) else 0,
        tokens=tokens,
        messages=1 + bool(checkpoint) + inputs.left_out.count + len(inputs.messages) + is_asked,
        pressure=loaded.rules.budget.pressure(tokens),
        # A new question has made no calls yet: the messages before it belong to the previous turn.
        tool_calls=0 if is_asked and _is_new(loaded) else _count_tool_calls(inputs.messages, run_id),
    )


def _is_new(loaded: LoadedContext) -> bool:
    """Return whether the question begins its turn, unlike the prompt to continue an answer."""
    return loaded.inputs.question.position == loaded.turn_position


def _turn_number(loaded: LoadedContext) -> int:
    """Return the number of questions up to this turn's. Messages sent during an answer belong to its turn."""
    asked = visible_messages(loaded.branch).filter(role=MessageRow.Role.USER, kind=MessageRow.Kind.MESSAGE)
    if loaded.turn_position is not None:
        return asked.filter(position__lte=loaded.turn_position).count()
    return asked.count() + (not loaded.inputs.question.is_empty)


def _count_tool_calls(messages: Sequence[Message], run_id: UUID | None) -> int:
    """Return the number of tool calls in the last turn, including those of a plan's steps."""
    count = count_step_calls(run_id) if run_id else 0
    for message in reversed(messages):
        count += len(message.tool_calls)
        if starts_turn(message):
            break
    return count
