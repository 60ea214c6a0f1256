"""Parsing a streamed completion from its bytes, however the network splits them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chat_models.stream_parser import MAX_BLANK_CHARS, MAX_FRUITLESS_BYTES, StreamParser
from agents.errors import ModelError
from agents.types import ModelItem, ReasoningDelta, TextDelta, TokenUsage, ToolCallDelta


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def read_all(*reads: bytes) -> tuple[list[ModelItem], StreamParser]:
    parser = StreamParser()
    items = [item for data in reads for item in parser.feed(data)]
    return items + parser.close(), parser


END = delta("stop") + b"data: [DONE]\n\n"


def test_a_byte_order_mark_does_not_hide_the_first_event() -> None:
    for stream in (delta(content="Hi") + END, delta("stop", content="Hi").strip()):
        items, parser = read_all(b"\xef\xbb\xbf" + stream)
        assert (items, parser.read_finish()) == ([TextDelta("Hi")], "stop")


def test_text_of_one_read_is_one_delta() -> None:
    items, parser = read_all(delta(content="Hel") + delta(content="lo"), delta(content=" you") + END)
    assert items == [TextDelta("Hello"), TextDelta(" you")]
    assert (parser.read_finish(), parser.is_done) == ("stop", True)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_a_stream_split_anywhere_gives_the_same_text(size: int) -> None:
    data = (
        b": keep-alive\r\n\r\n"
        + delta(content="Gr\u00fc\u00dfe, \u4e16\u754c \U0001f30d")
        + END.replace(b"\n", b"\r\n")
    )
    items, parser = read_all(*(data[at : at + size] for at in range(0, len(data), size)))
    assert (
        "".join(item.text for item in items if isinstance(item, TextDelta))
        == "Gr\u00fc\u00dfe, \u4e16\u754c \U0001f30d"
    )
    assert parser.read_finish() == "stop"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_and_answer_keep_their_order(field: str) -> None:
    items, _ = read_all(
        delta(**{field: "Let me"}) + delta(**{field: " see"}) + delta(content="Yes", **{field: None}) + END
    )
    assert items == [ReasoningDelta("Let me see", field == "reasoning_content"), TextDelta("Yes")]


def test_thinking_parts_of_the_content_are_reasoning() -> None:
    thinking = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes"},
    ]
    items, _ = read_all(delta(content=thinking) + END)
    assert items == [ReasoningDelta("hm"), TextDelta("Yes")]


def test_fragments_of_a_tool_call_keep_its_index() -> None:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": '{"a":1}'}}
    items, parser = read_all(delta(tool_calls=[first]) + delta(tool_calls=[rest]) + delta("tool_calls"))
    assert items == [ToolCallDelta(0, "c1", "f", ""), ToolCallDelta(0, "", "", '{"a":1}')]
    assert parser.read_finish() == "tool_calls"


def test_whole_tool_calls_without_an_index_are_numbered() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "f", "arguments": {"n": n}}} for n in range(2)]
    items, _ = read_all(delta(tool_calls=calls) + delta("tool_calls"))
    assert items == [ToolCallDelta(0, "c0", "f", '{"n": 0}'), ToolCallDelta(1, "c1", "f", '{"n": 1}')]


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3}, TokenUsage(9, 3, 0)),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
            TokenUsage(9, 3, 8),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 7}, TokenUsage(9, 3, 7)),
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": None}, TokenUsage(9, 3, 0)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
    ],
)
def test_usage_is_read_from_each_providers_fields(usage: dict[str, Any], counted: TokenUsage | None) -> None:
    _, parser = read_all(
        delta(content="x") + delta("stop") + event({"choices": [], "usage": usage}) + b"data: [DONE]\n"
    )
    assert parser.usage == counted


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("stop", "stop"), ("end_turn", "stop"), ("eos", "stop"), ("length", "length"), ("MAX_TOKENS", "length"),
        ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
    ],
)  # fmt: skip
def test_every_known_finish_reason_is_mapped_to_one_of_four(named: str, reason: str) -> None:
    _, parser = read_all(delta(content="x") + delta(named))
    assert parser.read_finish() == reason


def failure_of(*reads: bytes) -> tuple[list[ModelItem], ModelError]:
    items, parser = read_all(*reads)
    with pytest.raises(ModelError) as caught:
        parser.read_finish()
    return items, caught.value


def test_a_later_usage_of_zeros_does_not_replace_the_counts() -> None:
    counts = ({"prompt_tokens": 7, "completion_tokens": 2}, {"prompt_tokens": 0, "completion_tokens": 0})
    _, parser = read_all(
        delta("stop", content="Hi"), *(event({"choices": [], "usage": usage}) for usage in counts)
    )
    assert parser.usage == TokenUsage(7, 2)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"], ids=["no line end", "no blank line", "both"])
def test_usage_is_read_from_the_last_line_whatever_its_line_end(end: bytes) -> None:
    last = event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}).strip() + end
    _, parser = read_all(delta("stop", content="Hi"), last)
    assert (parser.usage, parser.read_finish()) == (TokenUsage(7, 2), "stop")


def test_an_incomplete_line_after_the_end_is_ignored() -> None:
    items, parser = read_all(delta("stop", content="Hi"), b'data: {"choices": [], "us')
    assert (items, parser.usage, parser.read_finish()) == ([TextDelta("Hi")], None, "stop")


def test_an_answer_without_an_end_is_a_cut_and_its_text_is_kept() -> None:
    items, error = failure_of(delta(content="Half an ans"))
    assert (items, error.category) == ([TextDelta("Half an ans")], "cut")


def test_a_done_without_a_finish_reason_is_not_an_end() -> None:
    assert failure_of(delta(content="Half"), b"data: [DONE]\n\n")[1].category == "cut"


def test_an_incomplete_last_line_is_a_cut_and_not_broken_json() -> None:
    assert failure_of(delta(content="Half") + b'data: {"choices": [{"del')[1].category == "cut"


@pytest.mark.parametrize(
    "broken",
    [
        b"data: 17\n\n",
        b"data: [1]\n\n",
        b'data: {"choices": 3}\n\n',
        b'data: {"choices": [3, null]}\n\n',
        b'data: {"choices": [{"delta": {"content": [3, {"type": "thinking", "thinking": 1}]}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
        b'data: {"choices": [{"delta": "text", "finish_reason": null}]}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [1, {"function": 2}]}}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
def test_one_invalid_event_does_not_end_an_answer(broken: bytes) -> None:
    items, parser = read_all(delta(content="Half ") + broken + delta(content="and half.") + END)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Half and half."
    assert parser.read_finish() == "stop"


@pytest.mark.mechanism("contract.ends")
@pytest.mark.parametrize(
    "broken", [b"data: {oops\n\n", b"data: {oops\n", delta(content="lost")[:-8] + b"\n\n"]
)
def test_an_answer_that_lost_an_event_continues_and_ends_as_lost(broken: bytes) -> None:
    items, parser = read_all(delta(content="Half ") + broken + delta(content="and half.") + END)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Half and half."
    assert (parser.read_finish(), parser.broken_events) == ("lost", 1)


def test_a_broken_event_after_the_end_does_not_affect_the_answer() -> None:
    _, parser = read_all(delta(content="All."), event({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    parser.feed(b"data: {oops\n\n")
    assert (parser.read_finish(), parser.broken_events) == ("stop", 1)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("STOP", "stop"), ("end_turn", "stop"), ("max_tokens", "length"), ("cosmic_rays", "unknown_reason")],
)
def test_an_unknown_finish_reason_is_not_treated_as_a_normal_end(reason: str, finish: str) -> None:
    _, parser = read_all(event({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}))
    assert parser.read_finish() == finish


def test_broken_events_are_counted() -> None:
    _, parser = read_all(b"data: {oops\n\n" + delta(content="x") + b"data: {again\n" + END)
    assert parser.broken_events == 2


def test_a_stream_of_only_broken_events_is_a_bad_response() -> None:
    assert failure_of(b"data: {oops\n\n")[1].category == "bad_response"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_event_in_several_data_lines_is_one_event(end: bytes) -> None:
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": "split"}}]}, indent=1).encode()
    lines = b"".join(b"data: " + line + end for line in chunk.split(b"\n")) + end
    items, parser = read_all(delta(content="Not "), lines, delta(content="!") + END)
    assert [item.text for item in items if isinstance(item, TextDelta)] == ["Not ", "split", "!"]
    assert (parser.read_finish(), parser.broken_events) == ("stop", 0)


def test_events_after_the_end_are_ignored() -> None:
    items, parser = read_all(delta(content="All.") + END + delta(content="More") + event({"error": "late"}))
    assert items == [TextDelta("All.")]
    assert parser.read_finish() == "stop"


def test_other_choices_are_ignored() -> None:
    both = [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]
    other = [{"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}]
    items, parser = read_all(event({"choices": both}) + event({"choices": other}) + END)
    assert items == [TextDelta("A")]
    assert parser.read_finish() == "stop"


@pytest.mark.parametrize("size", [1, 3, 200])
@pytest.mark.parametrize(
    ("content", "thought", "text"),
    [
        ("<think>Let me see.</think>\n\nYes.", "Let me see.", "Yes."),
        ("\n<think>Let me see", "Let me see", ""),
        ("<thinking>a < b</thinking>No <think> here.", "a < b", "No <think> here."),
        ("<think>ends in </thi", "ends in </thi", ""),
        ("The tag <think> is text.", "", "The tag <think> is text."),
        ("<th", "", "<th"),
        ("<think></think>Yes", "", "Yes"),
    ],
)
def test_text_between_leading_think_tags_is_reasoning(
    content: str, thought: str, text: str, size: int
) -> None:
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    items, parser = read_all(*(delta(content=piece) for piece in pieces), END)
    assert "".join(item.text for item in items if isinstance(item, ReasoningDelta)) == thought
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == text
    assert parser.read_finish() == "stop"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": 3},
        {"prompt_tokens": 5, "completion_tokens": -3},
        {"prompt_tokens": 10**15, "completion_tokens": 3},
        {"prompt_tokens": 5, "completion_tokens": 1e300},
        {"prompt_tokens": 10**400, "completion_tokens": 3},
        {"prompt_tokens": 5, "completion_tokens": 10**400},
        {"prompt_tokens": "12", "completion_tokens": 3},
        {"prompt_tokens": [12], "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": 3},
        [12, 3],
        "15",
        7,
    ],
)
def test_implausible_usage_is_ignored(usage: Any) -> None:
    items, parser = read_all(delta(content="Hi") + event({"choices": [], "usage": usage}) + END)
    assert items == [TextDelta("Hi")]
    assert (parser.usage, parser.read_finish()) == (None, "stop")


@pytest.mark.parametrize(
    "details", [[1], "3", {"cached_tokens": "3"}, {"cached_tokens": -3}, {"cached_tokens": 10**400}]
)
def test_implausible_cached_tokens_count_as_zero(details: Any) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": details}
    assert read_all(event({"choices": [], "usage": usage}))[1].usage == TokenUsage(5, 3, 0)


def test_an_html_page_instead_of_a_stream_is_a_bad_response() -> None:
    _, error = failure_of(b"<!doctype html>\n<html><body>Welcome</body></html>")
    assert error.category == "bad_response"
    assert "HTML" in error.provider_words


def test_an_empty_stream_is_a_bad_response() -> None:
    assert failure_of()[1].category == "bad_response"


@pytest.mark.parametrize(
    ("payload", "category"),
    [
        ({"error": {"message": "boom", "code": 502}}, "server"),
        ({"error": {"message": "Rate limit exceeded", "code": 429}}, "rate_limit"),
        ({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}, "overflow"),
        ({"object": "error", "message": "boom", "code": 400}, "bad_request"),
        ({"error": "boom"}, "server"),
        (
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "x", "code": 502}}]},
            "server",
        ),
    ],
)
def test_an_error_event_in_the_stream_gets_its_category(payload: dict[str, Any], category: str) -> None:
    assert failure_of(event(payload))[1].category == category


def test_an_error_object_outside_of_an_event_is_read_too() -> None:
    assert failure_of(b'{"error": {"message": "model `x` not found"}}')[1].category == "not_found"


def test_a_provider_that_gives_up_in_mid_answer_causes_a_cut() -> None:
    assert failure_of(delta(content="Half") + delta("insufficient_system_resource"))[1].category == "cut"


def test_a_whole_message_in_one_event_is_read_as_the_answer() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "All of it"}, "finish_reason": "stop"}
    items, parser = read_all(
        event({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    )
    assert (items, parser.read_finish()) == ([TextDelta("All of it")], "stop")


# --- arbitrary and endless input


SCALARS = st.sampled_from(
    [None, True, "", "x", "429", -1, 0, 3.5, 10**400, float("inf"), float("nan"), "\ud800", "<think>"]
)
FIELDS = [
    "choices", "usage", "error", "object", "message", "index", "delta", "finish_reason", "content", "reasoning",
    "reasoning_content", "refusal", "thinking", "tool_calls", "id", "function", "name", "arguments", "type", "text",
    "code", "status", "metadata", "raw", "detail", "param", "prompt_tokens", "completion_tokens", "cached_tokens",
]  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["choices", "usage", "error", "message"]), VALUES), VALUES, VALUES)
def test_no_event_raises_an_unexpected_exception_whatever_its_fields(
    chunk: Mapping[str, Any], choice: Any, inside: Any
) -> None:
    """Faults are reported by the parser's `error` or raised by `read_finish`."""
    parser = StreamParser()
    for sent in (chunk, {"choices": [choice]}, {"choices": [{"delta": inside}]}):
        parser.feed(f"data: {json.dumps(sent)}\n\n".encode())
    parser.close()
    with suppress(ModelError):
        parser.read_finish()


def cpu_s(reads: list[bytes]) -> float:
    began = time.thread_time()
    read_all(*reads)
    return time.thread_time() - began


def test_a_line_without_an_end_is_parsed_in_linear_time() -> None:
    assert cpu_s([b"x" * 1_024] * 20_000) < 3


LONG = "y" * 100_000


@pytest.mark.parametrize(
    "nothing",
    [
        LONG.encode(),
        f": {LONG}\n\n".encode(),
        f"<p>{LONG}</p>\n".encode(),
        f"data: {{{LONG}\n".encode(),
        event({"other": LONG}),
        delta(tool_calls=[{"index": 0, "other": LONG}]),
    ],
)
def test_an_endless_stream_without_output_is_a_bad_response(nothing: bytes) -> None:
    parser = StreamParser()
    read, piece = 0, nothing * (1_000_000 // len(nothing))
    while parser.error is None and read < 2 * MAX_FRUITLESS_BYTES:
        assert parser.feed(piece) == []
        read += len(piece)
    assert parser.error is not None
    assert parser.error.category == "bad_response"


def test_endless_blank_lines_are_passed_on_as_text() -> None:
    items, _ = read_all(*[delta(content="\n")] * (MAX_BLANK_CHARS + 5))
    assert items == [TextDelta("\n" * MAX_BLANK_CHARS), *[TextDelta("\n")] * 5]


KEY = "correct-horse-battery-staple"
CUT_IN_KEY = "word " * 117 + KEY


@pytest.mark.parametrize(
    "stream",
    [
        event({"error": {"message": CUT_IN_KEY}}),
        event({"object": "error", "message": CUT_IN_KEY}),
        event({"choices": [{"finish_reason": "error", "error": {"message": CUT_IN_KEY}}]}),
        json.dumps({"error": CUT_IN_KEY}).encode(),
        CUT_IN_KEY[25:].encode(),
    ],
)
def test_no_part_of_a_known_key_is_left_in_an_error_of_the_stream(stream: bytes) -> None:
    parser = StreamParser((KEY,))
    parser.feed(stream)
    parser.close()
    with pytest.raises(ModelError) as raised:
        parser.read_finish()
    assert "word" in raised.value.provider_words
    assert "correct" not in raised.value.provider_words
