"""Adapting requests to a server by its refusals."""

from __future__ import annotations

import pytest

from agents.chat_models.dialect import Dialect, adapt_dialect, guess_dialect, write_body
from agents.types import ModelEndpoint, ModelRequest, WireStyle
from memory.tokens import text_message

REQUEST = ModelRequest((text_message("user", "Hi"),), 500, temperature=0.2)


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("", "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://acme.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://api.deepseek.com", "max_tokens"),
        ("http://127.0.0.1:11434/v1", "max_tokens"),
        ("https://api.openai.com.evil.example/v1", "max_tokens"),
    ],
)
def test_the_host_decides_the_name_of_the_output_limit(base_url: str, name: str) -> None:
    assert guess_dialect(ModelEndpoint("m", base_url)).limit_name == name


def test_the_body_contains_only_the_fields_that_are_set() -> None:
    assert write_body(REQUEST, "m", Dialect()) == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 500,
        "stream_options": {"include_usage": True},
        "temperature": 0.2,
    }


def test_unsupported_fields_are_left_out_of_the_body() -> None:
    body = write_body(
        REQUEST, "m", Dialect(has_stream_options=False, has_temperature=False, output_limit=100)
    )
    assert body == {"model": "m", "stream": True, "messages": body["messages"], "max_tokens": 100}


@pytest.mark.parametrize(
    ("refusal", "adapted"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Dialect(limit_name="max_completion_tokens"),
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported. As an alternative, use 'max_completion_tokens'.",
            Dialect(limit_name="max_completion_tokens"),
        ),
        ("'temperature' is deprecated; alternate parameters: top_p", Dialect(has_temperature=False)),
        ("Unrecognized request argument supplied: stream_options", Dialect(has_stream_options=False)),
        ('[{"type":"extra_forbidden","loc":["body","stream_options"]}]', Dialect(has_stream_options=False)),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.",
            Dialect(has_temperature=False),
        ),
        (
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens",
            Dialect(output_limit=4096),
        ),
        (
            "Conversation roles must alternate user/assistant/user/assistant/...",
            Dialect(style=WireStyle(merges_roles=True)),
        ),
        (
            'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
            Dialect(style=WireStyle(merges_roles=True)),
        ),
        (
            "Please ensure that multiturn requests alternate between user and model.",
            Dialect(style=WireStyle(merges_roles=True)),
        ),
        (
            "After the (optional) system message(s), user and assistant roles should be alternating.",
            Dialect(style=WireStyle(merges_roles=True)),
        ),
        (
            "The reasoning_content in the thinking mode must be passed back to the API.",
            Dialect(style=WireStyle(needs_reasoning=True)),
        ),
        (
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            Dialect(style=WireStyle(needs_reasoning=True)),
        ),
        (
            "property 'reasoning_content' is unsupported",
            Dialect(style=WireStyle(has_reasoning=False)),
        ),
        ("System role not supported", Dialect(style=WireStyle(has_system=False))),
        ("System message must be at the beginning.", Dialect(style=WireStyle(has_late_system=False))),
        ("Unexpected role 'system' after role 'assistant'", Dialect(style=WireStyle(has_late_system=False))),
    ],
)
def test_the_dialect_is_adapted_to_a_refusal(refusal: str, adapted: Dialect) -> None:
    assert adapt_dialect(Dialect(), refusal) == adapted


def test_the_older_name_of_the_limit_is_used_if_the_newer_is_refused() -> None:
    refused = adapt_dialect(
        Dialect(limit_name="max_completion_tokens"), "Unknown parameter: max_completion_tokens"
    )
    assert refused == Dialect(limit_name="max_tokens")


@pytest.mark.parametrize("refusal", ["Invalid request", "messages: field required", "Image is invalid"])
def test_a_refusal_about_something_else_changes_nothing(refusal: str) -> None:
    assert adapt_dialect(Dialect(), refusal) is None


def test_an_output_limit_is_only_lowered() -> None:
    at_most = "This model supports at most {} completion tokens"
    lowered = adapt_dialect(Dialect(output_limit=4096), at_most.format(2048))
    assert lowered is not None
    assert lowered.output_limit == 2048
    assert adapt_dialect(Dialect(output_limit=4096), at_most.format(8192)) is None
