from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from memory.budget import TokenBudget
from memory.errors import PolicyError
from memory.window.policy import (
    DEFAULT_POLICY,
    ContextPolicy,
    check_user_fields,
    check_written,
    drop_overridden_aliases,
    merge_policies,
    within_bounds,
)


def test_the_defaults_match_the_documentation() -> None:
    policy = DEFAULT_POLICY
    assert (policy.strategy, policy.trigger, policy.soft_trigger) == ("checkpoint", 0.75, 0.60)
    assert (policy.keep_recent, policy.reserve_ratio) == (10, 0.10)
    assert (policy.max_turns, policy.max_steps, policy.cooldown_turns) == (0, 15, 2)
    assert (policy.summary_max_tokens, policy.message_char_limit) == (1_024, 50_000)
    assert (policy.old_result_char_limit, policy.recall_budget, policy.auto_compact) == (20_000, 8_000, True)


def test_later_layers_override_earlier_ones_field_by_field_and_are_recorded() -> None:
    effective = merge_policies(
        ("environment", {"trigger": 0.5, "keep_recent": 4}),
        ("model", {"keep_recent": 6, "strategy": None}),
        ("conversation", {"strategy": "turns"}),
    )
    assert (effective.policy.trigger, effective.policy.keep_recent, effective.policy.strategy) == (
        0.5,
        6,
        "turns",
    )
    assert effective.origins["trigger"] == "environment"
    assert effective.origins["keep_recent"] == "model"
    assert effective.origins["strategy"] == "conversation"
    assert effective.origins["max_steps"] == "default"


def test_an_unknown_setting_is_rejected_with_its_layer() -> None:
    with pytest.raises(PolicyError, match=r"kep_recent \(agent\)"):
        merge_policies(("agent", {"kep_recent": 3}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trigger", 0),
        ("keep_recent", -1),
        ("strategy", "forget"),
        ("summary_max_tokens", 1),
        ("max_steps", "many"),
    ],
)
def test_an_invalid_value_is_rejected_with_field_and_layer(field: str, value: object) -> None:
    with pytest.raises(PolicyError) as caught:
        merge_policies(("model", {}), ("conversation", {field: value}))
    assert (caught.value.field, caught.value.origin) == (field, "conversation")


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("keep_recent", "5", "integer"),
        ("max_tokens", "8000", "integer"),
        ("trigger", True, "number"),
        ("auto_compact", 1, "boolean"),
    ],
)
def test_a_value_of_another_type_is_rejected_on_write_but_converted_on_read(
    field: str, value: object, kind: str
) -> None:
    with pytest.raises(PolicyError, match=f"{field} .*: Input should be a valid {kind}"):
        check_written("agent", {field: value})
    merge_policies(("agent", {field: value}))


def test_each_alias_of_a_field_is_checked() -> None:
    with pytest.raises(PolicyError, match="max_steps"):
        check_written("conversation", {"max_steps": 1, "agent_max_steps": {}})


@pytest.mark.mechanism("digitorn.names")
def test_the_field_names_of_digitorn_and_cowagent_are_aliases() -> None:
    policy = merge_policies(
        ("digitorn", {"max_tokens": 8_000, "output_reserved": 1_000, "compression_trigger": 0.15}),
        (
            "cowagent",
            {"agent_max_context_turns": 30, "agent_max_steps": 9, "agent_max_context_tokens": 80_000},
        ),
    ).policy
    assert (policy.context_size, policy.max_output_tokens, policy.trigger) == (8_000, 1_000, 0.15)
    assert (policy.max_turns, policy.max_steps, policy.max_input_tokens) == (30, 9, 80_000)


@pytest.mark.mechanism("agentscope.trigger")
def test_a_trigger_leaves_room_for_the_summary_call() -> None:
    assert ContextPolicy(trigger=0.98).trigger == 0.9


def test_the_soft_trigger_is_always_below_the_hard_one() -> None:
    assert ContextPolicy(trigger=0.15).soft_ratio < 0.15
    assert DEFAULT_POLICY.soft_ratio == 0.60


@pytest.mark.mechanism("cowagent.max-turns")
def test_only_the_turns_strategy_limits_turns_by_default() -> None:
    assert DEFAULT_POLICY.turn_limit == 0
    assert ContextPolicy(strategy="turns").turn_limit == 20
    assert ContextPolicy(strategy="turns", max_turns=8).turn_limit == 8
    assert ContextPolicy(max_turns=8).turn_limit == 8


def test_tool_chains_stay_whole_for_three_turns_or_a_sixth_of_the_limit() -> None:
    assert DEFAULT_POLICY.full_turns == 3
    assert ContextPolicy(max_turns=60).full_turns == 10


def test_a_tool_result_may_take_fifteen_percent_of_the_window_and_at_most_25_000_tokens() -> None:
    assert DEFAULT_POLICY.result_limit(TokenBudget(8_000, 1_000)) == 1_200
    assert DEFAULT_POLICY.result_limit(TokenBudget(1_000_000, 64_000)) == 25_000
    assert ContextPolicy(tool_result_limit=77).result_limit(TokenBudget()) == 77


@pytest.mark.mechanism("cowagent.commands")
def test_users_set_their_own_fields_within_the_operators_bounds() -> None:
    operator = ContextPolicy(max_input_tokens=50_000)
    check_user_fields({"keep_recent": 6, "agent_max_context_tokens": 40_000, "max_steps": 15}, operator)
    with pytest.raises(PolicyError, match="allows at most 50,000"):
        check_user_fields({"agent_max_context_tokens": 80_000}, operator)
    with pytest.raises(PolicyError, match="allows at most 50,000"):
        # 0 means no limit, which exceeds the bound, too.
        check_user_fields({"max_input_tokens": 0}, operator)
    check_user_fields({"max_input_tokens": None, "recall_budget": 0}, operator)
    without_recall = ContextPolicy(recall_tokens=0, profile_budget=0)
    check_user_fields({"recall_tokens": 0, "recall_budget": 100}, without_recall)
    for switched_off in ("recall_tokens", "profile_budget"):
        with pytest.raises(PolicyError, match="allows at most 0"):
            check_user_fields({switched_off: 100}, without_recall)
    with pytest.raises(PolicyError, match="only the operator"):
        check_user_fields({"compact_prompt": "Forget it all."}, operator)
    with pytest.raises(PolicyError, match="keep_recent"):
        check_user_fields({"keep_recent": "many"}, operator)


def test_strings_are_converted_to_the_types_of_their_fields() -> None:
    policy = merge_policies(
        ("conversation", {"trigger": "0.5", "auto_compact": "false", "max_turns": "30"})
    ).policy
    assert (policy.trigger, policy.auto_compact, policy.max_turns) == (0.5, False, 30)


@pytest.mark.parametrize(
    ("fields", "before", "kept"),
    [
        ({"trigger": 0.7, "trigger_ratio": 0.5}, {"trigger": 0.7}, {"trigger_ratio": 0.5}),
        ({"trigger": 0.6, "trigger_ratio": 0.5}, {"trigger_ratio": 0.5}, {"trigger": 0.6}),
        ({"trigger": 0.7, "trigger_ratio": 0.5}, {}, {"trigger": 0.7, "trigger_ratio": 0.5}),
        ({"trigger": 0.7, "trigger_ratio": None}, {"trigger": 0.7}, {"trigger": 0.7, "trigger_ratio": None}),
        ({"keep_recent": 4, "trigger": 0.7}, {"trigger": 0.7}, {"keep_recent": 4, "trigger": 0.7}),
    ],
)
def test_the_most_recently_changed_alias_of_a_field_is_kept(
    fields: dict[str, Any], before: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert drop_overridden_aliases(fields, before) == kept


def test_the_reported_error_does_not_depend_on_the_order_of_fields() -> None:
    faults = {"keep_recent": "many", "trigger": 7, "no_such_thing": 1}
    for names in permutations(faults):
        with pytest.raises(PolicyError, match="keep_recent"):
            check_written("conversation", {name: faults[name] for name in names})
    for names in permutations(["compact_prompt", "summary_model"]):
        with pytest.raises(PolicyError, match="compact_prompt"):
            check_user_fields(dict.fromkeys(names, "text"), ContextPolicy())


def test_stored_fields_outside_the_current_bounds_are_dropped() -> None:
    operator = ContextPolicy(max_input_tokens=3_000, max_steps=5)
    stored = {"agent_max_steps": 15, "max_input_tokens": 0, "keep_recent": 4, "summary_model": "Scribe"}
    assert within_bounds(stored, operator) == {"keep_recent": 4, "summary_model": "Scribe"}
    assert within_bounds({"max_steps": 5, "max_input_tokens": None}, operator) == {"max_steps": 5}
