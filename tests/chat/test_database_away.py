"""A connection that breaks is nobody's failure: what was asked is asked again."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper

from chatapp.operations.database import in_database, persistently

pytestmark = pytest.mark.django_db(transaction=True)


class Breaking:
    """Reads the number 7. The first `times` reads break."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.tries = 0

    def __call__(self) -> int:
        self.tries += 1
        with connection.cursor() as cursor:
            if self.tries <= self.times:
                break_off(cursor)
            cursor.execute("SELECT 7")
            return int(cursor.fetchone()[0])


def break_off(cursor: CursorWrapper) -> None:
    if connection.vendor == "postgresql":
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    else:
        cursor.execute("ATTACH DATABASE '/nowhere/at/all' AS away")


async def test_a_read_whose_connection_breaks_is_made_again() -> None:
    breaking = Breaking(2)
    assert await persistently(breaking)() == 7
    assert breaking.tries == 3


async def test_what_may_not_happen_twice_is_tried_once() -> None:
    breaking = Breaking(1)
    with pytest.raises(OperationalError):
        await in_database(breaking)()
    assert breaking.tries == 1


async def test_what_is_wrong_in_itself_is_not_asked_again() -> None:
    tries = []

    def ask() -> None:
        tries.append(1)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        await persistently(ask)()
    assert len(tries) == 1
