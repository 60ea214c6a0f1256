from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.turns import (
    INTERRUPTED,
    after_reply,
    before_question,
    bind_groups,
    is_safe_split,
    reduce_turns,
    repair_tool_calls,
    safe_split,
    safe_split_after,
    split_turns,
)
from memory.types import Message, TextPart, ToolCallPart, ToolResultPart
from tests.memory.histories import call, histories, message, plain_turns, reply, result, user
from tests.memory.views import assert_no_orphans


@pytest.mark.mechanism("cowagent.turn")
def test_a_turn_is_a_user_message_and_all_that_follows_it() -> None:
    messages = [user("a"), call("1"), result("1"), reply("b"), user("c"), reply("d")]
    assert split_turns(messages) == [messages[:4], messages[4:]]


def test_a_greeting_is_a_turn_and_an_empty_history_has_no_turns() -> None:
    messages = [reply("hello"), user("a"), reply("b")]
    assert split_turns(messages) == [messages[:1], messages[1:]]
    assert split_turns([]) == []


def test_a_message_sent_during_a_run_stays_in_its_turn() -> None:
    injected = replace(user("faster"), kind="injected")
    messages = [user("a"), call("1"), result("1"), injected, reply("b")]
    assert split_turns(messages) == [messages]


def test_a_split_never_separates_a_call_from_its_results() -> None:
    messages = [user("a"), call("1"), result("1"), result("1"), reply("b")]
    assert [safe_split(messages, index) for index in range(6)] == [0, 1, 1, 1, 4, 5]
    assert [safe_split_after(messages, index) for index in range(6)] == [0, 1, 4, 4, 4, 5]


@pytest.mark.mechanism("digitorn.safe-split")
def test_a_result_without_a_call_prevents_no_split() -> None:
    messages = [user("a"), result("lost"), reply("b"), result("lost"), user("c"), reply("d")]
    assert all(is_safe_split(messages, index) for index in range(len(messages) + 1))


def test_a_call_without_a_result_prevents_no_split() -> None:
    messages = [user("a"), call("1"), user("b"), reply("c"), *plain_turns(50)]
    assert all(is_safe_split(messages, index) for index in range(len(messages) + 1))


def test_a_reused_call_id_binds_only_the_results_of_each_call() -> None:
    messages = [user("a"), call("call_0"), result("call_0"), user("b"), call("call_0"), result("call_0")]
    assert [safe_split(messages, index) for index in range(7)] == [0, 1, 1, 3, 4, 4, 6]


@pytest.mark.mechanism("digitorn.safe-split")
@settings(max_examples=60, deadline=None)
@given(histories(8), st.data())
def test_splits_enclose_the_index_and_interrupt_no_call(history: list[Message], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(history)))
    before, after = safe_split(history, index), safe_split_after(history, index)
    assert before <= index <= after <= len(history)
    assert is_safe_split(history, before)
    for split in (before, after):
        left, right = repair_tool_calls(history[:split]), repair_tool_calls(history[split:])
        assert interruptions(left) + interruptions(right) == interruptions(repair_tool_calls(history))


def interruptions(messages: tuple[Message, ...]) -> int:
    return sum(result.text == INTERRUPTED for each in messages for result in each.tool_results)


def test_an_interrupted_call_gets_an_error_result() -> None:
    repaired = repair_tool_calls([user("a"), call("1"), user("b")])
    assert [each.role for each in repaired] == ["user", "assistant", "tool", "user"]
    assert repaired[2].tool_results[0].text == INTERRUPTED
    assert repaired[2].tool_results[0].is_error


def test_orphaned_and_duplicate_results_are_dropped() -> None:
    repaired = repair_tool_calls([result("0"), user("a"), call("1"), result("1", "one"), result("1", "two")])
    assert [each.role for each in repaired] == ["user", "assistant", "tool"]
    assert repaired[2].tool_results[0].text == "one"


def test_a_message_sent_while_a_tool_ran_comes_after_its_result() -> None:
    injected = replace(user("faster"), kind="injected")
    repaired = repair_tool_calls([user("a"), call("1"), injected, result("1"), reply("b")])
    assert [each.role for each in repaired] == ["user", "assistant", "tool", "user", "assistant"]


def test_each_of_several_results_in_a_message_gets_its_own_message() -> None:
    both = message("assistant", ToolCallPart("1", "a", "{}"), ToolCallPart("2", "b", "{}"))
    answers = message("tool", ToolResultPart("2", "b", "two"), ToolResultPart("1", "a", "one"))
    repaired = repair_tool_calls([user("q"), both, answers])
    assert [each.tool_results[0].text for each in repaired[2:]] == ["one", "two"]


def test_repairing_a_history_without_tools_changes_no_message() -> None:
    history = plain_turns(3)
    assert all(a is b for a, b in zip(repair_tool_calls(history), history, strict=True))


@settings(max_examples=60, deadline=None)
@given(histories(8))
def test_repairing_removes_orphans_and_is_idempotent(history: list[Message]) -> None:
    repaired = repair_tool_calls(history)
    assert_no_orphans(repaired)
    assert repair_tool_calls(repaired) == repaired
    assert [each for each in history if each.role == "user"] == [
        each for each in repaired if each.role == "user"
    ]
    for start, end in bind_groups(repaired):
        assert_no_orphans(repaired[start:end])


def test_a_question_and_its_reply_stay_on_one_side_of_a_split() -> None:
    messages = [user("a"), reply("b"), user("c"), call("1"), result("1"), reply("d")]
    assert [before_question(messages, at) for at in range(7)] == [0, 0, 2, 2, 4, 5, 6]
    assert [after_reply(messages, at) for at in range(7)] == [0, 2, 2, 4, 4, 5, 6]


def test_reduced_turns_keep_the_user_text_and_the_last_reply() -> None:
    old = [user("find it"), call("1", text="I look"), result("1"), reply("Found."), reply("It is 7.")]
    new = [user("again"), call("2"), result("2"), reply("Still 7.")]
    reduced = reduce_turns([*old, *new])
    assert [each.text for each in reduced] == ["find it", "It is 7.", "again", "Still 7."]


def test_a_reduced_reply_with_a_call_loses_only_the_call() -> None:
    reduced = reduce_turns([user("a"), call("1", text="I look"), user("b"), reply("c")])
    assert reduced[1].parts == (TextPart("I look"),)
    assert reduced[1].tokens < call("1", text="I look").tokens


def test_reduction_does_not_change_turns_without_tools() -> None:
    history = plain_turns(9)
    assert reduce_turns(history) == history


def test_a_turn_with_a_pinned_result_keeps_its_tool_chain() -> None:
    pinned = [user("a"), call("1"), replace(result("1"), pinned=True), reply("b")]
    assert reduce_turns(pinned) == pinned
