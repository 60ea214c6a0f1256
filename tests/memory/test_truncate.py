from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.summaries.summary import summary_message
from memory.tokens import text_message, total_tokens
from memory.truncate import (
    TRUNCATED,
    choose_pins,
    cut_message,
    cut_middle,
    cut_to_tokens,
    find_question,
    level,
    shrink_messages,
    smart_truncate,
    squeeze_messages,
)
from memory.turns import repair_tool_calls
from memory.types import ImagePart, Message, TextPart, ToolResultPart
from tests.memory.histories import call, histories, message, plain_turns, reply, result, user
from tests.memory.views import assert_no_orphans

SYSTEM = text_message("system", "You are helpful.")


def question(text: str = "What now?") -> Message:
    return replace(user(text), kind="question", pinned=True)


def test_a_message_over_the_limit_is_cut_and_ends_with_a_mark() -> None:
    cut = cut_message(user("x" * 60_000), 50_000)
    assert cut.text.endswith(TRUNCATED)
    assert len(cut.text) == 50_000
    assert cut.tokens < user("x" * 60_000).tokens


def test_a_message_within_the_limit_is_returned_unchanged() -> None:
    short = user("short")
    assert cut_message(short, 50_000) is short


def test_long_parts_are_cut_before_short_ones() -> None:
    cut = cut_message(message("user", TextPart("keep me"), TextPart("y" * 9_000)), 1_000)
    assert cut.parts[0] == TextPart("keep me")
    assert sum(len(part.text) for part in cut.parts if isinstance(part, TextPart)) <= 1_000


def test_cut_arguments_are_still_json_and_keep_the_call_id() -> None:
    cut = cut_message(call("c1", json.dumps({"text": 'say "hi" ' * 2_000})), 500)
    assert cut.tool_calls[0].call_id == "c1"
    assert json.loads(cut.tool_calls[0].arguments)["truncated"].startswith('{"text"')
    assert len(cut.tool_calls[0].arguments) <= 500
    assert cut_message(cut, 500) is cut


def test_a_cut_result_keeps_its_offload_reference_and_its_error_mark() -> None:
    part = ToolResultPart("c", "read", "z" * 9_000, is_error=True, offload_ref="ref-7")
    cut = cut_message(message("tool", part), 400).tool_results[0]
    assert (cut.offload_ref, cut.is_error, cut.call_id) == ("ref-7", True, "c")


def test_a_cut_keeps_head_and_tail_and_counts_the_missing_characters() -> None:
    cut = cut_middle("HEAD" + "x" * 30_000 + "TAIL", 20_000)
    assert cut.startswith("HEAD")
    assert cut.endswith("TAIL")
    assert "10,008 characters left out" in cut
    assert len(cut) <= 20_000


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(0, 5_000))
def test_a_level_is_the_highest_cap_with_which_the_sizes_fit(sizes: list[int], room: int) -> None:
    cap = level(sizes, room)
    assert sum(min(size, cap) for size in sizes) <= room
    if sizes and cap < max(sizes):
        assert sum(min(size, cap + 1) for size in sizes) > room - len(sizes)


@pytest.mark.parametrize("tokens", [20, 50, 300, 2_000])
@pytest.mark.parametrize("text", ["word " * 8_000, "我们决定" * 4_000, "🎉🚀" * 3_000, "a1-B2 " * 4_000])
def test_a_message_can_be_cut_to_any_size(text: str, tokens: int) -> None:
    for whole in (
        user(text),
        result("c", text),
        call("c", text),
        message("user", TextPart(text), ImagePart("f", "image/png")),
    ):
        assert cut_to_tokens(whole, tokens).tokens <= tokens


def test_shrinking_does_not_cut_short_messages() -> None:
    short, long = user("My name is Ada."), reply("blah " * 5_000)
    shrunk = shrink_messages([short, long], 600)
    assert shrunk[0] is short
    assert total_tokens(shrunk) <= 600


def test_squeezing_drops_the_oldest_messages_then_shortens_and_drops_more() -> None:
    history = plain_turns(10, words=40)
    gone, kept = squeeze_messages(history, total_tokens(history[-6:]), keep_recent=4)
    assert (gone, list(kept)) == (history[:-6], history[-6:])
    gone, kept = squeeze_messages(history, total_tokens(history) // 4, keep_recent=10)
    assert len(kept) == 10
    assert kept[-2:] == tuple(history[-2:])
    gone, kept = squeeze_messages(history, 100, keep_recent=10)
    assert total_tokens(kept) <= 100


def test_the_question_is_the_marked_message_or_the_last_of_the_user() -> None:
    assert find_question([user("a"), reply("b"), user("c"), call("1"), result("1")]) == 2
    assert find_question([user("a"), question(), replace(user("c"), kind="injected")]) == 1
    assert find_question([reply("b")]) is None


def test_a_pinned_reply_keeps_its_question() -> None:
    history = [user("a"), replace(reply("b"), pinned=True), user("c"), reply("d")]
    assert choose_pins(history, 10_000) == {0, 1}


def test_a_pinned_result_keeps_its_call() -> None:
    history = [user("a"), call("1"), replace(result("1"), pinned=True), reply("b")]
    assert choose_pins(history, 10_000) == {0, 1, 2}


@pytest.mark.mechanism("fim.pins-half")
def test_past_half_of_the_budget_the_oldest_injected_messages_lose_their_pins_first() -> None:
    pinned = replace(user("word " * 100), pinned=True)
    history = [replace(pinned, kind="injected"), pinned, replace(pinned, kind="injected")]
    budget = pinned.tokens * 4 + 2
    assert choose_pins(history, budget) == {1, 2}
    assert choose_pins(history, budget, question_tokens=pinned.tokens) == {1}
    assert choose_pins(history, 10 * budget) == {0, 1, 2}


@pytest.mark.mechanism("fim.truncate")
def test_truncation_keeps_system_prompt_summary_pins_and_the_longest_suffix_in_order() -> None:
    history = plain_turns(12)
    history[2] = replace(history[2], pinned=True)
    messages = [SYSTEM, summary_message("They met in May."), *history, question()]
    room = messages[1].tokens + history[2].tokens + total_tokens(history[-6:]) + messages[-1].tokens + 5
    assert list(smart_truncate(messages, room, 0)) == [*messages[:2], history[2], *history[-6:], messages[-1]]


@pytest.mark.mechanism("fim.truncate-start")
def test_truncation_never_starts_with_an_assistant_message() -> None:
    messages = [SYSTEM, *plain_turns(12), question()]
    for room in range(100, 900, 60):
        for keep_recent in (0, 10):
            assert smart_truncate(messages, room, keep_recent)[1].role == "user"


def test_a_request_that_fits_is_returned_unchanged() -> None:
    messages = (SYSTEM, *plain_turns(2), question())
    assert smart_truncate(messages, 60_000, 10) == messages


def test_truncation_shortens_the_newest_result_instead_of_dropping_it() -> None:
    messages = [SYSTEM, question(), call("1"), result("1", "found it " * 2_000)]
    kept = smart_truncate(messages, 500, 10)
    assert [each.role for each in kept] == ["system", "user", "assistant", "tool"]
    assert total_tokens(kept[1:]) <= 500


@settings(max_examples=80, deadline=None)
@given(histories(10), st.integers(60, 20_000), st.integers(0, 12))
def test_truncation_keeps_its_guarantees_for_any_history(
    history: list[Message], room: int, keep_recent: int
) -> None:
    asked = question()
    messages = [SYSTEM, summary_message("They met in May."), *repair_tool_calls(history), asked]
    kept = smart_truncate(messages, room, keep_recent)
    assert total_tokens(kept[1:]) <= room
    assert kept[0] is SYSTEM
    assert kept[-1] is asked
    assert_no_orphans(kept)
    said = [each.position for each in kept if each.position is not None and each.role != "tool"]
    assert said == sorted(said)
