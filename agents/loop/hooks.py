"""Declare hooks (at the start or end of a turn, if a condition holds, run an action) and decide which are due.

No action is run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from memory.bounds import (
    MAX_HOOK_CHARS,
    MAX_ID_CHARS,
    MAX_KEPT_MESSAGES,
    MAX_SUMMARY_TOKENS,
    MIN_SUMMARY_TOKENS,
    Id,
    Number,
    Position,
)
from memory.errors import PolicyError
from memory.strategies.registry import StrategyName
from memory.strict_types import StrictTypes, first_problem
from memory.window.policy import ContextPolicy

Moment = Literal["turn_start", "turn_end"]
HookLevel = Literal["built-in", "environment", "deployment", "agent", "conversation"]
"""Where a hook was declared."""
AUTO_COMPACT_ID = "_auto_compact"
AUTO_COMPACT_COOLDOWN_S = 30.0
MAX_COOLDOWN_S = 1e9
"""Longer than any conversation lasts."""


class _Declared(StrictTypes):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ContextPressure(_Declared):
    type: Literal["context_pressure"]
    threshold: float = Field(gt=0, le=1)


class TurnCount(_Declared):
    """Holds only in this turn; the first turn of a conversation is 1."""

    type: Literal["turn_count"]
    count: Number


class ToolCalls(_Declared):
    type: Literal["tool_calls"]
    threshold: Position


class MessageCount(_Declared):
    type: Literal["message_count"]
    threshold: Position


class Always(_Declared):
    type: Literal["always"]


Condition = Annotated[
    ContextPressure | TurnCount | ToolCalls | MessageCount | Always, Field(discriminator="type")
]


class CompactContext(_Declared):
    """Compacts the context; fields that are not set default to the policy."""

    type: Literal["compact_context"]
    strategy: StrategyName | None = None
    keep_recent: int | None = Field(None, ge=0, le=MAX_KEPT_MESSAGES)
    summary_max_tokens: int | None = Field(None, ge=MIN_SUMMARY_TOKENS, le=MAX_SUMMARY_TOKENS)


class InjectMessage(_Declared):
    type: Literal["inject_message"]
    message: str = Field(max_length=MAX_HOOK_CHARS)
    role: Literal["system", "user"] = "system"


class ModuleAction(_Declared):
    """Calls a registered tool or action."""

    type: Literal["module_action"]
    module: str = Field("", max_length=MAX_ID_CHARS)
    action: Id
    params: dict[str, Any] = Field(default_factory=dict)


class LogMessage(_Declared):
    type: Literal["log"]
    message: str = Field(max_length=MAX_HOOK_CHARS)


Action = Annotated[CompactContext | InjectMessage | ModuleAction | LogMessage, Field(discriminator="type")]


class Hook(_Declared):
    id: str = Field(min_length=1, max_length=100)
    on: Moment = "turn_end"
    condition: Condition
    action: Action
    cooldown: float = Field(0.0, ge=0, le=MAX_COOLDOWN_S, description="Seconds between two firings.")


_HOOKS: TypeAdapter[tuple[Hook, ...]] = TypeAdapter(tuple[Hook, ...])


@dataclass(frozen=True, slots=True)
class EffectiveHooks:
    """The hooks in force; `levels` maps the id of each to where it was declared."""

    hooks: tuple[Hook, ...] = ()
    levels: Mapping[str, HookLevel] = field(default_factory=dict)


def read_hooks(declared: Sequence[Mapping[str, Any]], level: HookLevel) -> tuple[Hook, ...]:
    """Return the declared hooks. Raise PolicyError, which names the invalid field."""
    try:
        return _HOOKS.validate_python(declared)
    except ValidationError as error:
        place, problem = first_problem(error)
        raise PolicyError(".".join(filter(None, ("hooks", place))), level, problem) from None


def write_hooks(hooks: Iterable[Hook]) -> list[dict[str, Any]]:
    """Return JSON values that `read_hooks` can read."""
    return [hook.model_dump(mode="json", exclude_none=True) for hook in hooks]


def join_hooks(*declared: tuple[HookLevel, Sequence[Hook]]) -> EffectiveHooks:
    """Merge the hooks of all levels, widest first. A later level replaces a hook with the same id, in its place."""
    joined = {hook.id: hook for _, hooks in declared for hook in hooks}
    return EffectiveHooks(
        tuple(joined.values()), {hook.id: level for level, hooks in declared for hook in hooks}
    )


@dataclass(frozen=True, slots=True)
class TurnState:
    """The values that conditions check.

    `tokens` and `messages` describe the request before anything is cut, `pressure` is its share of the budget, and
    `tool_calls` counts the calls of this turn.
    """

    turn: int
    tokens: int
    messages: int
    pressure: float
    tool_calls: int = 0


def due_hooks(
    hooks: Sequence[Hook],
    moment: Moment,
    state: TurnState,
    *,
    fired_at: Mapping[str, datetime],
    now: datetime,
) -> list[Hook]:
    """Return the hooks that are due, in declared order. `fired_at` maps their ids to when they last fired here."""
    return [
        hook
        for hook in hooks
        if hook.on == moment and _holds(hook.condition, state) and not _is_cooling(hook, fired_at, now)
    ]


def _holds(condition: Condition, state: TurnState) -> bool:
    match condition:
        case ContextPressure(threshold=threshold):
            return state.pressure > threshold
        case TurnCount(count=count):
            return state.turn == count
        case ToolCalls(threshold=limit):
            return state.tool_calls > limit
        case MessageCount(threshold=limit):
            return state.messages > limit
        case Always():
            return True


def _is_cooling(hook: Hook, fired_at: Mapping[str, datetime], now: datetime) -> bool:
    last = fired_at.get(hook.id)
    return last is not None and now - last < timedelta(seconds=hook.cooldown)


def fill_placeholders(text: str, state: TurnState) -> str:
    """Return the text with `{turn}`, `{tokens}` and `{messages}` replaced; other braces stay as they are."""
    for name, value in (("turn", state.turn), ("tokens", state.tokens), ("messages", state.messages)):
        text = text.replace("{" + name + "}", str(value))
    return text


def with_auto_compact(declared: EffectiveHooks, policy: ContextPolicy) -> EffectiveHooks:
    """Return the declared hooks, preceded by the built-in one if none of them compacts and the policy wants it."""
    if not policy.auto_compact or compacts_itself(declared.hooks):
        return declared
    built_in = Hook(
        id=AUTO_COMPACT_ID,
        on="turn_start",
        condition=ContextPressure(type="context_pressure", threshold=policy.trigger),
        action=CompactContext(type="compact_context"),
        cooldown=AUTO_COMPACT_COOLDOWN_S,
    )
    return EffectiveHooks((built_in, *declared.hooks), {AUTO_COMPACT_ID: "built-in", **declared.levels})


def compacts_itself(hooks: Sequence[Hook]) -> bool:
    """Return whether a declared hook compacts the context, so that nothing else does."""
    return any(isinstance(hook.action, CompactContext) for hook in hooks)


def needs_turn_number(hooks: Sequence[Hook]) -> bool:
    """Return whether a hook uses the number of the turn, which then has to be counted."""
    return any(
        isinstance(hook.condition, TurnCount) or "{turn}" in getattr(hook.action, "message", "")
        for hook in hooks
    )
