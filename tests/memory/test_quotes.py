"""Quotes are found in a text however many they are, as if each were looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quotes import FEW, Quotes

words = st.sampled_from(
    ["the", "gate", "code", "of", "depot", "is", "7731-heliotrope", "“quoted”", "犬の名前"]
)
sentences = st.lists(words, min_size=1, max_size=8).map(" ".join)
OTHERS = [f"Something else of number {number}." for number in range(FEW)]


@given(said=sentences, quotes=st.lists(sentences, max_size=5))
def test_many_are_found_like_few(said: str, quotes: list[str]) -> None:
    text = f"user: […] {said} […]"
    at_words = [quote for quote in quotes if f" {quote}" in text]
    assert Quotes([*quotes, *OTHERS]).are_in(text) >= bool(at_words)
    assert Quotes(quotes).are_in(text) == any(quote in text for quote in quotes)


@pytest.mark.parametrize("others", [[], OTHERS], ids=["few", "many"])
def test_what_is_quoted_within_others_words_is_found(others: list[str]) -> None:
    quotes = Quotes(["- the gate code is 7731", "short", *others])
    assert quotes.are_in('They said: "- the gate code is 7731".')
    assert quotes.are_in("It is short.")
    assert not quotes.are_in("The gate code is 7732.")
    assert not Quotes(others).are_in("")
