"""Limits count bytes, and the mark of a cut counts the missing characters of the whole text."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from agents.chat_models.usage import OutputBounds, OutputText
from agents.presets.yaml_text import YamlError, read_yaml
from agents.tools.calculator import calculate
from agents.types import ReasoningDelta, TextDelta, ToolCallDelta
from memory.summaries.summary import bounded_summary
from memory.tokens import text_message
from memory.truncate import cut_to_tokens

LONG = " ".join(f"Ann paid {at} euros to Bob in Rome; invoice INV-{at} was sent." for at in range(300))


def left_out(text: str) -> int:
    [told] = re.findall(r"([\d,]+) characters left out", text)
    return int(told.replace(",", ""))


def test_the_mark_of_a_cut_counts_the_missing_characters_of_the_whole_text() -> None:
    for cut in (cut_to_tokens(text_message("user", LONG), 500).text, bounded_summary(LONG, 400)):
        assert left_out(cut) == pytest.approx(len(LONG) - len(cut), abs=100)


@pytest.mark.parametrize("room", [0, 1, 2, 10, 11, 39, 40, 100])
def test_a_delta_is_cut_at_its_limit_in_bytes(room: int) -> None:
    bounds = OutputBounds(0, 0, room)
    for text in ("漢" * 10, "a" * 40, "😀" * 10, "\ud83d" * 10):
        for item in (TextDelta(text), ReasoningDelta(text)):
            cut = bounds.cut(item, OutputText())
            assert isinstance(cut, TextDelta | ReasoningDelta)
            assert len(cut.text.encode("utf-8", "surrogatepass")) <= room
            assert text.startswith(cut.text)
        call = bounds.cut(ToolCallDelta(0, "id", "name", text), OutputText())
        assert isinstance(call, ToolCallDelta)
        assert len(call.arguments.encode("utf-8", "surrogatepass")) <= room


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1**20000", 1),
        ("0**20000", 0),
        ("(-1)**20001", -1),
        ("(-1)**20000", 1),
        ("0**0", 1),
        ("1**-99999", 1),
    ],
)
def test_powers_that_do_not_grow_are_calculated(expression: str, value: int) -> None:
    assert calculate(expression) == Fraction(value)


@pytest.mark.parametrize("text", ["yes: 1\non: 2\n", "true: 1\nyes: 2\n", "1: a\n'1': b\n"])
def test_a_key_in_two_spellings_is_a_duplicate(text: str) -> None:
    with pytest.raises(YamlError, match="twice"):
        read_yaml(text)
