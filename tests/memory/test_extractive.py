from __future__ import annotations

import pytest

from memory.summaries.extractive import extract_missing, extract_summary, find_facts, write_extract
from memory.summaries.summary import EARLIER_TRUNCATED
from memory.tokens import estimate_text
from tests.memory.histories import call, plain_turns, reply, result, user

FILLER = [user("Thanks, that is really nice of you."), reply("You are welcome! Is there anything else?")]

FACTS = [
    ("My name is Ada Lovelace and I live in Turin.", "Ada Lovelace"),
    ("The invoice INV-2041 is due on 18 October 2026.", "INV-2041"),
    ("Please use the account DE89-3704-0044.", "DE89-3704-0044"),
    ("We decided to roll back if more than 50 orders are stuck.", "more than 50 orders"),
    ("The handler is called onSaveDraft, not on_save.", "onSaveDraft"),
    ("Look at https://example.org/a?b=1 for the price list.", "https://example.org/a?b=1"),
    ("The commit is 3f9a77c1 on branch release/2.4.", "3f9a77c1"),
    ("我们决定在十月十八日凌晨迁移，由王强负责。", "十月十八日"),
    ("移行作業は2026年10月18日に行うことを決めました。", "2026年10月18日"),
    ("회의에서 예산을 3,400만 원으로 결정했습니다.", "3,400만"),
    ("Договорились начать перенос 18.10.2026 в 03:00.", "18.10.2026"),
    ("اتفقنا على أن يبدأ النقل يوم 18/10/2026.", "18/10/2026"),
]


@pytest.mark.mechanism("ours.extract")
@pytest.mark.parametrize(("sentence", "fact"), FACTS)
def test_an_extract_keeps_a_fact_among_a_hundred_times_as_much_small_talk(sentence: str, fact: str) -> None:
    history = [*FILLER * 50, user(sentence), *FILLER * 50]
    assert fact in extract_summary(history, 60)


@pytest.mark.mechanism("ours.extract")
@pytest.mark.parametrize("name", ["", "Ann: "])
def test_an_extract_keeps_a_statement_without_facts_among_small_talk(name: str) -> None:
    small = [
        "Thanks!",
        "Great!",
        "Totally agree.",
        "Hey, nice!",
        "Wow, congrats!",
        "Sure thing.",
        "Yay!",
        "So cool!",
    ]
    told = "my brother quit his job at the bakery because the flour made him cough"
    history = [user(f"{name}{text} Number{'s' * turn}") for turn, text in enumerate(small * 5)]
    extract = extract_summary([*history[:20], user(f"{name}By the way, {told}."), *history[20:]], 60)
    assert told in extract


def test_an_extract_fits_its_limit_keeps_the_order_and_names_the_speakers() -> None:
    extract = extract_summary(plain_turns(200), 300)
    assert 150 < estimate_text(extract) <= 300
    assert "User: " in extract or "Assistant: " in extract
    asked = [
        int(line.split("Answer ")[1].split(":")[0]) for line in extract.splitlines() if "Answer " in line
    ]
    assert asked == sorted(asked)


def test_an_extract_contains_a_repeated_fact_once() -> None:
    history = [
        user("The code is 4711."),
        reply("Noted: the code is 4711, right?"),
        user("The date is 2026-10-18."),
    ]
    extract = extract_summary(history, 30)
    assert extract.count("4711") == 1
    assert "2026-10-18" in extract


def test_an_extract_includes_facts_from_tool_results() -> None:
    assert "$420" in extract_summary([user("price?"), call("1"), result("1", "Order A-17 costs $420.")], 60)


def test_the_extract_of_an_empty_history_is_empty() -> None:
    assert extract_summary([], 100) == ""
    assert extract_summary([user("")], 100) == ""


def test_facts_are_found_verbatim() -> None:
    found = find_facts(
        "Ask Grace Hopper about INV-2041: `make run` failed 3 times in src/app.py, see a.b@example.org."
    )
    assert {"Grace Hopper", "INV-2041", "`make run`", "3", "src/app.py", "a.b@example.org"} <= set(found)


def test_facts_missing_from_a_summary_are_returned_with_their_sentences() -> None:
    history = [user("The code is 4711."), user("The date is 2026-10-18."), *FILLER]
    missing = extract_missing(history, "- Ada lives in Turin.", "They set the date 2026-10-18.", 100)
    assert "The code is 4711." in missing
    assert "Turin" in missing
    assert "2026-10-18" not in missing
    assert extract_missing(history, "", "4711 and 2026-10-18", 100) == ""


@pytest.mark.parametrize(
    ("said", "summary", "is_told"),
    [
        ("My locker is number 47 in the gym.", "They paid invoice INV-4711.", False),
        ("My locker is number 47 in the gym.", "They paid 47.50 euros.", False),
        ("My locker is number 47 in the gym.", "They have locker 47.", True),
        ("My locker is number 47 in the gym.", "他的储物柜是47号。", True),
        ("Rent is $900 a month.", "They pay US$900.", True),
        ("Rent is $900 a month.", "They pay $9000.", False),
    ],
)
def test_a_summary_contains_a_fact_only_as_a_whole_token(said: str, summary: str, is_told: bool) -> None:
    assert (extract_missing([user(said), *FILLER], "", summary, 100) == "") == is_told


@pytest.mark.parametrize(
    "text", ["." * 100_000, "a." * 50_000, '"a ' * 30_000, "1," * 50_000, "a/" * 50_000, "Aa " * 30_000]
)
def test_extracts_of_degenerate_texts_fit_their_limit(text: str) -> None:
    assert estimate_text(extract_summary([user(text)], 200)) <= 210


def test_the_fallback_extract_keeps_the_previous_summary() -> None:
    text = write_extract("Ada wants the cheapest.", [user("The code is 4711.")], 100)
    assert text.startswith("Ada wants the cheapest.")
    assert "4711" in text
    assert estimate_text(write_extract("word " * 500, plain_turns(50), 100)) <= 100
    assert write_extract("", [], 100) == EARLIER_TRUNCATED
