"""The threads of the database: what takes long is kept apart from what answers wait for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from chatapp.accounts.models import User
from chatapp.operations.database import THREADS, beside_database, in_database

pytestmark = pytest.mark.django_db(transaction=True)


async def test_long_work_holds_up_nothing_else() -> None:
    is_done = threading.Event()
    long_work = [asyncio.ensure_future(beside_database(is_done.wait)(60)) for _ in range(THREADS)]
    try:
        assert await asyncio.wait_for(in_database(User.objects.count)(), 30) == 0
    finally:
        is_done.set()
        assert all(await asyncio.gather(*long_work))
