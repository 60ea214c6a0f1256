"""Which hooks are due: conditions, cooldowns, placeholders and the built-in hook, as pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from agents.loop.hooks import (
    AUTO_COMPACT_ID,
    CompactContext,
    Hook,
    InjectMessage,
    LogMessage,
    ModuleAction,
    TurnState,
    due_hooks,
    fill_placeholders,
    join_hooks,
    needs_turn_number,
    with_auto_compact,
)
from memory.window.policy import ContextPolicy

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
STATE = TurnState(turn=5, tokens=18_000, messages=12, pressure=0.5, tool_calls=3)
LOG = {"type": "log", "message": "Turn {turn}"}


def hook(condition: dict[str, Any] | None = None, action: dict[str, Any] | None = None, **more: Any) -> Hook:
    declared = {"id": "h", "condition": condition or {"type": "always"}, "action": action or LOG}
    return Hook.model_validate(declared | more)


def is_due(declared: Hook, state: TurnState = STATE, **fired_at: datetime) -> bool:
    return bool(due_hooks([declared], declared.on, state, fired_at=fired_at, now=NOON))


@pytest.mark.mechanism("digitorn.conditions")
@pytest.mark.parametrize(
    ("condition", "due"),
    [
        ({"type": "always"}, True),
        ({"type": "context_pressure", "threshold": 0.49}, True),
        ({"type": "context_pressure", "threshold": 0.5}, False),
        ({"type": "turn_count", "count": 5}, True),
        ({"type": "turn_count", "count": 4}, False),
        ({"type": "turn_count", "count": 6}, False),
        ({"type": "tool_calls", "threshold": 2}, True),
        ({"type": "tool_calls", "threshold": 3}, False),
        ({"type": "message_count", "threshold": 11}, True),
        ({"type": "message_count", "threshold": 12}, False),
    ],
)
def test_a_hook_fires_when_its_condition_holds(condition: dict[str, Any], due: bool) -> None:
    assert is_due(hook(condition)) is due


def test_a_hook_is_due_only_at_its_own_moment_and_the_default_is_turn_end() -> None:
    assert hook().on == "turn_end"
    assert due_hooks([hook()], "turn_start", STATE, fired_at={}, now=NOON) == []


@pytest.mark.mechanism("digitorn.hooks")
def test_a_hook_is_not_due_during_its_cooldown() -> None:
    resting = hook(cooldown=30)
    assert not is_due(resting, h=NOON - timedelta(seconds=29))
    assert is_due(resting, h=NOON - timedelta(seconds=30))
    assert is_due(resting, other=NOON)
    assert is_due(hook(), h=NOON), "without a cooldown it fires every time"


def test_hooks_are_due_in_the_order_of_their_declaration() -> None:
    declared = [hook(id="b"), hook(id="a"), hook({"type": "turn_count", "count": 9}, id="c")]
    assert [each.id for each in due_hooks(declared, "turn_end", STATE, fired_at={}, now=NOON)] == ["b", "a"]


@pytest.mark.mechanism("digitorn.hook-log")
def test_placeholders_are_filled_and_other_braces_left_alone() -> None:
    text = fill_placeholders("Turn {turn}: ~{tokens} tokens, {messages} messages, {other} {}", STATE)
    assert text == "Turn 5: ~18000 tokens, 12 messages, {other} {}"


@pytest.mark.mechanism("digitorn.auto-compact")
def test_automatic_compaction_is_a_built_in_hook() -> None:
    effective = with_auto_compact(join_hooks(), ContextPolicy(trigger=0.15))
    [built_in] = effective.hooks
    assert effective.levels == {AUTO_COMPACT_ID: "built-in"}
    assert (built_in.id, built_in.on, built_in.cooldown) == (AUTO_COMPACT_ID, "turn_start", 30.0)
    assert built_in.condition.model_dump() == {"type": "context_pressure", "threshold": 0.15}
    assert built_in.action == CompactContext(type="compact_context")


@pytest.mark.mechanism("digitorn.auto-compact")
def test_a_declared_compaction_replaces_the_built_in_hook_and_a_policy_can_disable_it() -> None:
    own = hook(action={"type": "compact_context", "strategy": "truncate", "keep_recent": 4})
    compacting, logging = join_hooks(("agent", [own])), join_hooks(("agent", [hook()]))
    assert with_auto_compact(compacting, ContextPolicy()) == compacting
    assert with_auto_compact(logging, ContextPolicy(auto_compact=False)) == logging
    assert [each.id for each in with_auto_compact(logging, ContextPolicy()).hooks] == [AUTO_COMPACT_ID, "h"]


def test_the_nearest_of_two_hooks_with_the_same_id_wins_and_reports_its_level() -> None:
    wide, near = hook(id="a"), hook(id="a", cooldown=5)
    effective = join_hooks(("deployment", [wide, hook(id="b")]), ("conversation", [near]))
    assert effective.hooks == (near, hook(id="b"))
    assert effective.levels == {"a": "conversation", "b": "deployment"}


@pytest.mark.parametrize(
    ("action", "read_as"),
    [
        ({"type": "compact_context", "summary_max_tokens": 512}, CompactContext),
        ({"type": "inject_message", "message": "Be brief."}, InjectMessage),
        ({"type": "module_action", "module": "conversation", "action": "pin"}, ModuleAction),
        (LOG, LogMessage),
    ],
)
def test_every_action_can_be_declared(action: dict[str, Any], read_as: type) -> None:
    assert isinstance(hook(action=action).action, read_as)


@pytest.mark.parametrize(
    "wrong",
    [
        {"condition": {"type": "moon_phase"}},
        {"condition": {"type": "context_pressure", "threshold": 2}},
        {"action": {"type": "compact_context", "strategy": "magic"}},
        {"action": {"type": "inject_message", "message": "x", "role": "assistant"}},
        {"on": "turn_middle"},
        {"cooldown": -1},
        {"cooldwon": 3},
    ],
)
def test_an_invalid_declaration_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        hook(**wrong)


def test_the_turn_number_is_needed_only_by_hooks_that_use_it() -> None:
    assert needs_turn_number([hook()])
    assert needs_turn_number([hook({"type": "turn_count", "count": 2}, {"type": "log", "message": "x"})])
    assert not needs_turn_number([hook(action={"type": "log", "message": "~{tokens} tokens"})])
