"""Context overflow in every vendor's wording, and errors that only look like it. Each wording names its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.chat_models.error_mapping import map_error
from agents.chat_models.overflow import Overflow, find_output_limit, find_overflow

WORDINGS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("overflow_wordings.json").read_text(encoding="utf-8")
)
VENDORS_ASKED_FOR = (
    "OpenAI, Azure, Anthropic, Gemini, Vertex, DeepSeek, Mistral, Cohere, xAI, Groq, Together, Fireworks, OpenRouter, "
    "vLLM, SGLang, TGI, llama.cpp, Ollama, LM Studio, LiteLLM, Bedrock, Qwen, Moonshot, Zhipu, Perplexity, Cerebras, "
    "NVIDIA NIM"
)


def name_case(case: dict[str, Any]) -> str:
    return f"{case['vendor']}: {case['text'][:50]}"


@pytest.mark.mechanism("digitorn.overflow")
@pytest.mark.parametrize("case", WORDINGS["overflow"], ids=name_case)
def test_an_overflow_is_recognised_with_the_window_that_it_names(case: dict[str, Any]) -> None:
    overflow = find_overflow(case["text"])
    assert overflow is not None
    assert overflow.window_tokens == case["window_tokens"]


@pytest.mark.parametrize("case", WORDINGS["overflow"], ids=name_case)
def test_an_overflow_with_its_http_status_becomes_an_overflow_error(case: dict[str, Any]) -> None:
    error = map_error(case["status"], {"error": {"message": case["text"]}})
    assert (error.category, error.window_tokens) == ("overflow", case["window_tokens"])


@pytest.mark.mechanism("digitorn.overflow")
@pytest.mark.parametrize("case", WORDINGS["not_overflow"], ids=name_case)
def test_an_error_that_only_looks_like_an_overflow_gets_its_own_category(case: dict[str, Any]) -> None:
    assert find_overflow(case["text"]) is None
    assert map_error(case["status"], {"error": {"message": case["text"]}}).category == case["category"]


@pytest.mark.parametrize("vendor", VENDORS_ASKED_FOR.split(", "))
def test_every_common_vendor_is_in_the_table(vendor: str) -> None:
    assert any(vendor.lower() in case["vendor"].lower() for case in WORDINGS["overflow"])


def test_every_wording_names_its_source() -> None:
    cases = [case for cases in WORDINGS.values() for case in cases]
    assert [case["text"] for case in cases if not case["source"].startswith("https://")] == []


def test_the_room_for_an_answer_is_computed_if_both_sizes_are_named() -> None:
    overflow = find_overflow(
        "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, "
        "730 in the functions, and 800 in the completion)."
    )
    assert overflow == Overflow(window_tokens=8192, prompt_tokens=7413)
    assert overflow.room_tokens == 779


def test_a_prompt_larger_than_the_window_leaves_no_room() -> None:
    overflow = find_overflow("prompt is too long: 219898 tokens > 200000 maximum")
    assert overflow is not None
    assert overflow.room_tokens == 0


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas …",
            4096,
        ),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens`", 16384),
        ("Range of max_tokens should be [1, 8192]", 8192),
        ("integer above maximum value, expected a value <= 12288, but got 32000 instead", 12288),
        ("The maximum tokens you requested exceeds the model limit of 2048.", 2048),
        ("Rate limit reached", None),
    ],
)
def test_the_output_limit_is_read_from_the_error(text: str, limit: int | None) -> None:
    assert find_output_limit(text) == limit


@pytest.mark.parametrize(
    "text",
    [
        "Prompt tokens (9000) exceed the model's max sequence length of 8192",
        "Context window exceeded: 210000/200000",
        "This request would exceed the context window of 200000 tokens",
        "Token indices sequence length is longer than the specified maximum sequence length for this model (5000 > 4096)",
        "your input is too long for this model, shorten it",
    ],
)
def test_an_unlisted_wording_is_recognised_by_its_meaning(text: str) -> None:
    assert find_overflow(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "context deadline exceeded",
        "upstream request timeout exceeded",
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
        "The request exceeds the maximum number of stop sequences",
        "Request contains too many images: 25 > 20",
        "messages.5.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    ],
)
def test_exceeding_another_limit_is_not_an_overflow(text: str) -> None:
    assert find_overflow(text) is None


def test_chinese_wordings_of_context_and_other_limits_are_distinguished() -> None:
    assert find_overflow("请求的token数超过模型限制") is not None
    for other in (
        "参数错误：max_tokens 超过上限",
        "授权错误：日流控超限。超过当日最大访问量的限制",
        "每分钟 token 数超过限制，请降低请求频率",
        "token 额度超过上限，请充值",
    ):
        assert find_overflow(other) is None
