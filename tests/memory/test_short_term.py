from __future__ import annotations

from collections.abc import Sequence

import pytest

from memory.protocols import BaseMemory
from memory.short_term import SummaryMemory, WindowMemory
from memory.tokens import text_message
from memory.types import Message
from tests.memory.histories import call, plain_turns, result, user


def fill(memory: BaseMemory, messages: Sequence[Message]) -> tuple[Message, ...]:
    for each in messages:
        memory.add_message(each)
    return memory.get_messages()


@pytest.mark.mechanism("fim.short-term")
def test_a_window_keeps_the_system_prompt_and_the_last_messages() -> None:
    system, history = text_message("system", "Hi."), plain_turns(5)
    memory = WindowMemory(4)
    assert fill(memory, [system, *history]) == (system, *history[-4:])
    memory.clear()
    assert memory.get_messages() == ()


def test_a_window_keeps_a_call_with_its_result() -> None:
    messages = [user("a"), call("1"), result("1")]
    assert fill(WindowMemory(1), messages) == tuple(messages[1:])


@pytest.mark.mechanism("fim.short-term")
def test_a_summary_memory_folds_what_is_old_into_one_summary() -> None:
    asked: list[str] = []

    def summarise(previous: str, messages: Sequence[Message]) -> str:
        asked.append(previous)
        return f"Summary number {len(asked)} of their talk."

    messages = fill(SummaryMemory(summarise, limit=10, keep=4), plain_turns(12))
    assert messages[0].kind == "summary"
    assert asked[0] == ""
    assert asked[1].startswith("Summary number 1")
    assert f"Summary number {len(asked)}" in messages[0].text
    assert len(messages) <= 11


def test_a_summary_memory_survives_a_summariser_that_says_nothing() -> None:
    messages = fill(SummaryMemory(lambda previous, leaving: "", limit=10, keep=4), plain_turns(12))
    assert "costs $" in messages[0].text
