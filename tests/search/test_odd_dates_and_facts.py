"""Odd input to memory/dates.py and memory/extractive.py."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from django.test import Client

from chatapp.accounts.models import User
from memory.dates import find_dates
from tests.servers.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 27)
Clients = Callable[[User], Client]


@pytest.mark.parametrize("text", ["0000年", "零零零零年", "MAC 00:1A, batch 0000年"])
def test_a_year_zero_does_not_raise(text: str):
    find_dates(text, TODAY)


def test_a_long_number_beside_a_month_does_not_raise():
    """`int` refuses to parse more than 4,300 digits."""
    find_dates("The result of March is " + "7" * 5_000, TODAY)
    find_dates("in March " + "7" * 5_000, TODAY)


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


@pytest.mark.parametrize("text", ["/", "A-"])
def test_facts_of_a_message_of_ordinary_length_are_found_in_bounded_time(text: str):
    """Forgetting finds the facts of each message that it deletes. `re` holds the GIL: during a slow match the process
    answers no other request, and the removal would be retried forever."""
    program = (
        "from memory.quotes import Quotes\nfrom chatapp.recall.analysis import vocabulary\n"
        f"Quotes([({text!r} * 100_000)[:100_000]], vocabulary)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)
