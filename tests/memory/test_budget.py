from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.budget import Sizes, TokenBudget, resolve_budget


@pytest.mark.mechanism("fim.budget")
def test_the_defaults_leave_sixty_thousand_tokens_of_input() -> None:
    budget = resolve_budget().budget
    assert (budget.context_size, budget.max_output_tokens, budget.system_reserve) == (128_000, 64_000, 4_000)
    assert budget.input_tokens == 60_000
    assert not budget.clamped


@pytest.mark.mechanism("fim.budget-sources")
def test_each_size_comes_from_the_first_source_that_has_it() -> None:
    resolved = resolve_budget(
        model=Sizes(context_size=200_000),
        environment=Sizes(context_size=9_000, max_output_tokens=8_000),
        detected=Sizes(context_size=32_000, max_output_tokens=4_000),
    )
    assert resolved.budget == TokenBudget(200_000, 8_000, 4_000)
    assert (resolved.context_size_from, resolved.max_output_tokens_from) == ("model", "environment")


def test_without_any_source_the_output_is_half_of_a_small_window() -> None:
    resolved = resolve_budget(detected=Sizes(context_size=32_000))
    assert resolved.budget.max_output_tokens == 16_000
    assert (resolved.context_size_from, resolved.max_output_tokens_from) == ("detected", "default")


@pytest.mark.mechanism("fim.budget-floor")
def test_a_misconfigured_budget_is_clamped_at_4000_tokens_with_a_warning() -> None:
    resolved = resolve_budget(model=Sizes(context_size=8_000, max_output_tokens=6_000))
    assert resolved.budget.clamped
    assert resolved.budget.input_tokens == 4_000
    assert "8,000" in (resolved.warning or "")
    assert resolve_budget().warning is None


def test_the_minimum_input_reduces_the_output_and_never_exceeds_the_window() -> None:
    budget = TokenBudget(8_000, 6_000, 4_000)
    assert budget.output_tokens == 1_000
    assert budget.input_tokens + budget.output_tokens + budget.reserve_tokens == 8_000


def test_a_window_below_the_minimum_input_is_divided_between_input_and_output() -> None:
    budget = TokenBudget(1_000, 500, 4_000)
    assert budget.clamped
    assert budget.input_tokens == 875
    assert budget.output_tokens == 125


@pytest.mark.mechanism("cowagent.max-tokens")
def test_an_input_limit_lowers_the_budget() -> None:
    assert TokenBudget(1_000_000, 64_000, 4_000, input_limit=50_000).input_tokens == 50_000
    assert resolve_budget(input_limit=70_000).budget.input_tokens == 60_000


@pytest.mark.mechanism("digitorn.pressure")
def test_pressure_is_the_share_of_the_budget() -> None:
    assert TokenBudget(128_000, 64_000, 4_000).pressure(45_000) == 0.75


@pytest.mark.mechanism("fim.reserve")
def test_a_system_prompt_larger_than_its_reserve_reduces_the_input() -> None:
    budget = TokenBudget(128_000, 64_000, 4_000)
    assert budget.input_after(4_000) == 60_000
    assert budget.input_after(10_000) == 54_000


def test_a_short_request_gets_the_whole_configured_output_even_if_clamped() -> None:
    budget = TokenBudget(8_000, 6_000, 4_000)
    assert budget.output_for(200) == 6_000
    assert budget.output_for(6_800) == budget.output_tokens


@given(st.integers(1_000, 1_000_000), st.integers(1, 1_000_000), st.integers(0, 20_000))
def test_input_reserve_and_answer_never_exceed_the_window(window: int, output: int, reserve: int) -> None:
    budget = TokenBudget(window, output, reserve)
    assert budget.input_tokens >= 1
    assert budget.output_tokens >= 1
    assert budget.input_tokens + budget.reserve_tokens + budget.output_tokens <= window
    assert budget.input_tokens >= 4_000 or window < 4_572


@pytest.mark.mechanism("holmes.threshold")
@pytest.mark.parametrize("request_tokens", [1, 500, 3_000, 60_000, 63_999])
def test_a_full_request_and_its_answer_fit_the_window(request_tokens: int) -> None:
    budget = TokenBudget(128_000, 64_000, 4_000)
    assert request_tokens + budget.output_for(request_tokens) <= budget.context_size
