"""Order numbers in a summary, the daily file and the next summary are complete or absent, never cut."""

from __future__ import annotations

import re
from functools import partial

import pytest

from chatapp.accounts.models import User
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.threads import in_database
from tests.context_engine.chatting import chatting, on_a_loop
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = [f"ORD-{71_000 + 7 * number}/SN{340_000 + 13 * number}" for number in range(120)]
LIST = f"My open orders are {', '.join(ORDERS)}."
_NUMBER = re.compile(r"ORD[-\w/]*|\bSN\w*")


@pytest.mark.mechanism("memory.whole-facts")
@pytest.mark.parametrize(
    "summariser",
    [ERRORS["server"](), says(f"They spoke of {ORDERS[0]}."), says(LIST)],
    ids=["none", "short", "all"],
)
@on_a_loop
async def test_order_numbers_are_never_cut_in_summaries_or_the_daily_file(
    alice: User, summariser: Behaviour
) -> None:
    async with chatting(alice, count=4, server=ModelServer(summary_default=summariser)) as chat:
        await chat.ask(LIST)
        for turn in range(3):
            await chat.ask(f"And then, number {turn}?")
        first = await chat.compact(keep_recent=2)
        for turn in range(3):
            await chat.ask(f"The garden of number {turn} is ready.")
        second = await chat.compact(keep_recent=2)
        days = {entry.day async for entry in MemoryEntry.objects.all()}
        daily = [await in_database(partial(read_day, alice, day))() for day in days]
        texts = (first["summary"], second["summary"], "\n".join(daily))
        found = [set(_NUMBER.findall(text)) for text in texts]
        assert set().union(*found) <= set(ORDERS)
        assert found[0]
        assert found[1]
        assert found[2] or summariser.error is not None


def read_day(user: User, day: object) -> str:
    memory_files.write_day(user.pk, day)
    return memory_files.day_path(user.pk, day).read_text()
