"""Windows, output limits and prices of known models, whatever name a host gives them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pytest_django.fixtures import Settings

from agents.types import TokenUsage
from chatapp.providers.model_facts import TABLE, find_facts, normalize_name, price_call
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import resolve_budget_inputs
from memory.budget import resolve_budget


@pytest.mark.mechanism("digitorn.detection")
@pytest.mark.parametrize(
    ("model", "window"),
    [
        # the models listed in the Digitorn design
        ("deepseek-chat", 131_072),
        ("gpt-4o", 128_000),
        ("gpt-4o-mini", 128_000),
        ("o3", 200_000),
        ("o3-mini", 200_000),
        ("llama-3.3-70b-versatile", 128_000),
        ("mistral-large-latest", 128_000),
        # many spellings
        ("openai/gpt-4o-2024-11-20", 128_000),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000),
        ("Meta-Llama-3.1-8B-Instruct", 131_072),
        ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", 131_072),
        ("llama3:8b", 8_192),
        ("qwen2.5:14b", 32_768),
        ("mixtral-8x7b-32768", 32_768),
        ("models/gemini-2.5-pro", 1_048_576),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-4", 8_192),
        # not a version of claude-opus-4
        ("claude-opus-4-7", 1_000_000),
        # only in genai-prices
        ("grok-4.7", 500_000),
    ],
)
def test_the_window_of_a_known_model_is_found(model: str, window: int) -> None:
    assert find_facts(model).context_size == window


@pytest.mark.parametrize("model", ["my-own-model", "marco-o1", "", "/", "gpt", "claude-opus-4-93"])
def test_an_unknown_model_has_no_window_and_no_output_limit(model: str) -> None:
    facts = find_facts(model)
    assert (facts.context_size, facts.max_output_tokens) == (None, None)


def test_the_table_has_unique_names_and_plausible_sizes() -> None:
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["models"]
    names = [normalize_name(name) for name, _, _ in rows]
    assert len(set(names)) == len(names)
    for name, window, output in rows:
        assert 1_000 <= window <= 3_000_000, name
        assert output is None or 1_000 <= output < window, name


@pytest.mark.mechanism("fim.budget-sources")
def test_each_size_comes_from_the_first_source_that_sets_it(settings: Settings) -> None:
    settings.LLM_CONTEXT_SIZE, settings.LLM_MAX_OUTPUT_TOKENS = 50_000, 0
    config = ModelConfig(model_id="gpt-4o", max_output_tokens=2_000, detected_context_size=8_192)
    inputs = resolve_budget_inputs(config)
    resolved = resolve_budget(model=inputs.model, environment=inputs.environment, detected=inputs.detected)
    assert (resolved.budget.context_size, resolved.context_size_from) == (50_000, "environment")
    assert (resolved.budget.max_output_tokens, resolved.max_output_tokens_from) == (2_000, "model")
    settings.LLM_CONTEXT_SIZE = 0
    assert resolve_budget_inputs(config).detected.context_size == 8_192


def test_a_window_below_the_public_one_does_not_get_the_public_output_limit() -> None:
    config = ModelConfig(model_id="qwen2.5:7b", detected_context_size=4_096)
    assert resolve_budget_inputs(config).detected.max_output_tokens == 2_048


USAGE = TokenUsage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


def test_the_operators_prices_take_precedence() -> None:
    config = ModelConfig(
        model_id="gpt-4o", input_price=Decimal(1), output_price=Decimal(10), cached_price=Decimal("0.1")
    )
    assert price_call(config, USAGE) == Decimal("0.6") + Decimal("0.04") + Decimal(1)


def test_cached_input_costs_as_much_as_input_unless_the_operator_sets_a_price() -> None:
    config = ModelConfig(model_id="gpt-4o", input_price=Decimal(1), output_price=Decimal(0))
    assert price_call(config, USAGE) == Decimal(1)


def test_public_prices_are_the_fallback() -> None:
    assert price_call(ModelConfig(model_id="gpt-4o"), USAGE) == Decimal("3.0")


def test_an_unknown_price_is_none() -> None:
    assert price_call(ModelConfig(model_id="gpt-4o", base_url="http://127.0.0.1:1/v1"), USAGE) is None
    assert price_call(ModelConfig(model_id="my-own-model"), USAGE) is None


def test_the_demo_model_is_free() -> None:
    assert price_call(ModelConfig(model_id="demo", kind="demo"), USAGE) == 0
