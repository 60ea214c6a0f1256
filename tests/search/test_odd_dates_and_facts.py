"""Odd input to memory/recall/dates.py and memory/summaries/extractive.py."""

from collections.abc import Callable
from datetime import date

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.recall.analysis import vocabulary
from memory.long_term.quotes import Quotes
from memory.recall.date_spans import DateSpan
from memory.recall.dates import Dates, find_dates
from memory.summaries.extractive import STRONG_FACT, find_facts

TODAY = date(2026, 11, 27)
Clients = Callable[[User], Client]


@pytest.mark.parametrize("text", ["0000年", "零零零零年", "MAC 00:1A, batch 0000年"])
def test_a_year_zero_is_no_date(text: str):
    assert find_dates(text, TODAY) == Dates()


@pytest.mark.parametrize("text", ["The result of March is ", "in March "])
def test_a_long_number_beside_a_month_is_not_part_of_the_date(text: str):
    """`int` refuses to parse more than 4,300 digits."""
    found = find_dates(text + "7" * 5_000, TODAY)
    assert found == find_dates("in March", TODAY)
    assert found.spans[0] == DateSpan(date(2026, 3, 1), date(2026, 3, 31), 1.0)


def test_searching_for_a_year_zero_is_answered(alice: User, api_client: Clients):
    client = api_client(alice)
    client.raise_request_exception = False
    assert client.get("/api/v1/memory/search", {"q": "0000年"}).status_code == 200


def test_proposing_to_forget_with_a_year_zero_is_answered(alice: User, api_client: Clients):
    client = api_client(alice)
    client.raise_request_exception = False
    asked = client.post(
        "/api/v1/memory/forget/propose", {"query": "forget 0000年 report"}, content_type="application/json"
    )
    assert asked.status_code < 500


@pytest.mark.parametrize("run", ["/", "A-"])
def test_facts_beside_a_long_run_of_characters_are_found(run: str):
    """Forgetting finds the facts of each message that it deletes. A pattern that is slow here would take hours, and
    `re` holds the GIL: the process would answer no other request."""
    text = f"My order is INV-4711 {(run * 100_000)[:100_000]} and my code is QX-00017."
    strong = [fact for fact, weight in find_facts(text).items() if weight >= STRONG_FACT]
    assert strong == ["INV-4711", "QX-00017"]
    quotes = Quotes([text], vocabulary)
    assert [quotes.are_in(f"It is {fact}!") for fact in (*strong, "QX-0001")] == [True, True, False]
