"""Long runs of one character are read in linear time; with quadratic time they would take hours."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from memory.language.sentences import Vocabulary, split_sentences
from memory.language.terms import Analyzer
from memory.long_term.claims import find_claims
from memory.long_term.memory_requests import is_for_good, read_forget_request, read_remember_requests
from memory.recall.questions import QuestionReader
from memory.summaries.extractive import find_facts

LENGTH = 100_000
RUNS = (
    " ",
    "\n",
    "\t",
    "\u3000",
    "\u00a0",
    " \n\t",
    ".",
    "-",
    ",",
    "(",
    "7",
    "十",
    "a",
    "_",
    "'",
    "non ",
    "もう",
    "1 2 ",
    "१२ ",
    "hi what ",
)
ANALYZER = Analyzer()
QUESTIONS = QuestionReader(ANALYZER)
VOCABULARY = Vocabulary(ANALYZER)
READERS: tuple[Callable[[str], Any], ...] = (
    lambda text: QUESTIONS.read(text, date(2026, 11, 27)),
    lambda text: list(read_remember_requests(text)),
    read_forget_request,
    is_for_good,
    find_facts,
    split_sentences,
    lambda text: list(find_claims(text, VOCABULARY)),
)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("run", RUNS, ids=ascii)
def test_a_long_run_is_read_in_time(run: str) -> None:
    text = f"my sister{(run * LENGTH)[:LENGTH]}x"
    for read in READERS:
        read(text)
    short = f"forget my sister{(run * LENGTH)[:900]}for good"  # Short enough for a forget request.
    is_in_word = re.search(r"\wfor good", short) is not None
    assert is_for_good(short) is not is_in_word
    request = read_forget_request(short)
    assert request is not None
    assert (request.startswith("my sister"), request.endswith("for good")) == (True, is_in_word)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "frame", ["{} lives in Rome.", "Ich bin {} gezogen.", "मेरी {} में रहती है।", "أختي {} تسكن في"]
)
@pytest.mark.parametrize("run", ["a", "1", "'", "a'", "a-", "न", "م"], ids=ascii)
def test_a_statement_with_a_long_word_is_read_in_time(run: str, frame: str) -> None:
    list(find_claims(frame.format((run * LENGTH)[:LENGTH]), VOCABULARY))


def test_white_space_between_words_does_not_change_the_question() -> None:
    asked, gapped = (
        QUESTIONS.read(text, date(2026, 11, 27))
        for text in (
            "What did I say on 3 May 2026?",
            "What did I   say \n\n\n on 3\u3000\u3000\u3000May    2026?",
        )
    )
    assert asked == gapped
