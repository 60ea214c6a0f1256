"""Quotes are found in a text however many they are, as if each were looked for."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.quotes import FEW, Quotes

pieces = st.sampled_from(
    ["the gate code", " ", "_", "\n", "n", "\\", "*", "is 7731-heliotrope", "“quoted”", "犬の名前", "- "]
)
texts = st.lists(pieces, max_size=12).map("".join)
OTHERS = [f"Something else of number {number}." for number in range(FEW)]


@given(text=texts, quotes=st.lists(texts.filter(bool), max_size=5))
@example(text="_the gate code is 7731-heliotrope_", quotes=["the gate code is 7731-heliotrope"])
@example(text="nthe gate code", quotes=["the gate code"])
def test_many_are_found_like_few(text: str, quotes: list[str]) -> None:
    expected = any(quote in text for quote in quotes)
    assert Quotes(quotes).are_in(text) == expected
    assert Quotes([*quotes, *OTHERS]).are_in(text) == expected


@pytest.mark.parametrize("others", [[], OTHERS], ids=["few", "many"])
def test_what_is_quoted_within_others_words_is_found(others: list[str]) -> None:
    quotes = Quotes(["- the gate code is 7731", "short", *others])
    assert quotes.are_in('They said: "- the gate code is 7731".')
    assert quotes.are_in("It is short.")
    assert not quotes.are_in("The gate code is 7732.")
    assert not Quotes(others).are_in("")
