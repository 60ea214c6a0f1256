"""Messages in OpenAI's format, in a form that strict servers accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents.chat_models.wire import write_messages, write_request
from agents.types import ModelRequest, ToolSpec, WireStyle
from memory.tokens import text_message
from memory.types import ImagePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart


def message(role: Any, *parts: Part) -> Message:
    return Message(role, parts, tokens=1)


def values_in(data: Any) -> Iterator[Any]:
    yield data
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from values_in(value)


def test_text_is_a_plain_string() -> None:
    assert write_messages([text_message("system", "Be brief."), text_message("user", "Hi")]) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


def test_an_image_in_view_is_sent_as_its_data_url_beside_the_text() -> None:
    image = ImagePart("f1", "image/png", data_url="data:image/png;base64,AAAA")
    assert write_messages([message("user", TextPart("Look"), image)]) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        }
    ]


def test_an_image_out_of_view_is_replaced_by_a_note() -> None:
    [written] = write_messages([message("user", ImagePart("f1", "image/png"))])
    assert "no longer in view" in written["content"][0]["text"]


def test_tool_calls_and_their_results_are_separate_messages_linked_by_id() -> None:
    written = write_messages(
        [
            message("assistant", ToolCallPart("c1", "clock", ""), ToolCallPart("c2", "sum", '{"a": 1}')),
            message("tool", ToolResultPart("c1", "clock", "noon"), ToolResultPart("c2", "sum", "")),
        ]
    )
    assert written == [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "sum", "arguments": '{"a": 1}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
        {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
    ]


@pytest.mark.parametrize("nothing", ["", "\n\n"])
def test_the_body_contains_no_null_or_empty_values(nothing: str) -> None:
    image = ImagePart("f1", "image/png")
    request = ModelRequest(
        (
            text_message("system", "S"),
            message("user", TextPart(nothing)),
            message("user", TextPart(nothing), TextPart(nothing)),
            message("user", TextPart(nothing), image),
            message("assistant", TextPart(nothing)),
            message("assistant", ReasoningPart("hm"), TextPart(nothing)),
            message("assistant", TextPart(nothing), ToolCallPart("c", "f", "{}")),
            message("tool", ToolResultPart("c", "f", nothing)),
            message("user"),
            text_message("user", "Q"),
        ),
        100,
        tools=(ToolSpec("f", "does f", {}),),
    )
    body = write_request(request)
    body["tools"][0]["function"]["parameters"].pop("properties")
    assert all(value not in (None, "", [], {}, nothing) for value in values_in(body))
    assert [wire["role"] for wire in body["messages"]] == ["system", "user", "assistant", "tool", "user"]


def test_without_tools_the_body_has_no_tools() -> None:
    assert "tools" not in write_request(ModelRequest((text_message("user", "Q"),), 100))


@pytest.mark.mechanism("ours.one-system")
def test_a_late_system_message_becomes_a_user_message_if_only_the_first_may_be_system() -> None:
    messages = [
        text_message("system", "S"),
        text_message("user", "one"),
        text_message("assistant", "yes"),
        text_message("system", "late"),
        text_message("user", "two"),
    ]
    assert [wire["role"] for wire in write_messages(messages)] == [
        "system",
        "user",
        "assistant",
        "system",
        "user",
    ]
    written = write_messages(messages, WireStyle(has_late_system=False))
    assert [wire["role"] for wire in written] == ["system", "user", "assistant", "user", "user"]
    alternating = write_messages(messages, WireStyle(merges_roles=True))
    assert [wire["role"] for wire in alternating] == ["system", "user", "assistant", "user"]
    assert alternating[-1]["content"] == "late\n\ntwo"


def test_adjacent_messages_of_one_role_merge_for_servers_that_require_alternation() -> None:
    image = ImagePart("f1", "image/png", data_url="data:image/png;base64,AAAA")
    written = write_messages(
        [
            text_message("system", "S"),
            text_message("user", "summary"),
            text_message("user", "one"),
            text_message("assistant", "yes"),
            text_message("user", "two"),
            message("user", TextPart("look"), image),
        ],
        WireStyle(merges_roles=True),
    )
    assert [wire["role"] for wire in written] == ["system", "user", "assistant", "user"]
    assert written[1]["content"] == "summary\n\none"
    assert [part["type"] for part in written[3]["content"]] == ["text", "text", "image_url"]


def test_tool_messages_never_merge() -> None:
    written = write_messages(
        [
            message("assistant", ToolCallPart("c1", "f", "{}")),
            message("tool", ToolResultPart("c1", "f", "1"), ToolResultPart("c2", "f", "2")),
        ],
        WireStyle(merges_roles=True),
    )
    assert len(written) == 3


def test_without_a_system_role_the_first_user_message_begins_with_the_prompt() -> None:
    written = write_messages(
        [text_message("system", "S"), text_message("user", "Q")], WireStyle(has_system=False)
    )
    assert written == [{"role": "user", "content": "S\n\nQ"}]
