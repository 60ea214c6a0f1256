"""Days of many entries: written, read, edited and emptied in as many statements as days of a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry

Clients = Callable[[User], Client]
DAYS = "/api/v1/memory/days"
FEW, MANY = 4, 40
"""Both are forgotten in one transaction, and stored in one statement each."""

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(alice: User, api_client: Clients) -> Client:
    return api_client(alice)


def say(count: int, word: str) -> str:
    return "\n\n".join(f"## 09:{at:02d}\n\nPebble {word}-{at} lies in drawer {at}." for at in range(count))


def put(client: Client, day: str, markdown: str) -> dict[str, Any]:
    answer = client.put(f"{DAYS}/{day}", {"markdown": markdown}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def texts(shape: dict[str, Any]) -> list[str]:
    return [entry["text"] for entry in shape["entries"]]


def statements_of_a_life(client: Client, day: str, count: int) -> dict[str, int]:
    """Return how many statements each step takes."""
    url, taken = f"{DAYS}/{day}", dict[str, int]()

    def counted(step: str, work: Callable[[], Any]) -> Any:
        with CaptureQueriesContext(connection) as asked:
            done = work()
        taken[step] = len(asked)
        return done

    written = counted("write", lambda: put(client, day, say(count, "Red")))
    assert texts(written) == [f"Pebble Red-{at} lies in drawer {at}." for at in range(count)]
    assert counted("read", lambda: client.get(url).json()) == written
    edited = written["markdown"].replace("Red", "Blue")
    assert len(texts(counted("edit", lambda: put(client, day, edited)))) == count
    replaced = counted("replace", lambda: put(client, day, say(count, "Green")))
    assert texts(replaced) == [f"Pebble Green-{at} lies in drawer {at}." for at in range(count)]
    counted("empty", lambda: client.delete(url))
    assert not MemoryEntry.objects.exists()
    return taken


@pytest.mark.usefixtures("no_files")
def test_the_statements_of_a_day_do_not_grow_with_its_entries(client: Client) -> None:
    statements_of_a_life(client, "2026-11-19", FEW)  # what a process learns once
    few = statements_of_a_life(client, "2026-11-20", FEW)
    assert statements_of_a_life(client, "2026-11-21", MANY) == few
