"""What a plain turn costs the database, from the stored message to the finished answer. The numbers may only fall."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Message
from chatapp.operations import clock
from chatapp.operations.database import THREADS, in_database, in_writer
from chatapp.runs import runner
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from tests.context_engine.chatting import chatting, on_a_loop
from tests.servers.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

MOST_STATEMENTS = {"sqlite": 34, "postgresql": 39}
"""PostgreSQL locks rows by statements of their own."""
MOST_TRANSACTIONS = 3


@asynccontextmanager
async def counted() -> AsyncIterator[list[str]]:
    """The statements of the threads of the database."""
    sent: list[str] = []
    everybody = threading.Barrier(THREADS)

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql.strip())
        return execute(sql, params, many, context)

    def begin() -> None:
        # Once for each thread, also where the writer is one of them.
        connections[connection.alias].execute_wrappers[:] = [note]

    def end() -> None:
        connections[connection.alias].execute_wrappers.clear()

    async def in_each_thread(call: Callable[[], None]) -> None:
        def together() -> None:
            call()
            everybody.wait(30)

        await asyncio.gather(*(in_database(together)() for _ in range(THREADS)))
        await in_writer(call)()

    await in_each_thread(begin)
    try:
        yield sent
    finally:
        await in_each_thread(end)


async def take_turn(user: User, conversation_id: str, text: str) -> Receipt:
    send = partial(send_message, user=user, conversation_id=conversation_id, model=None)
    new = NewMessage(text, client_id=text)
    receipt = await in_writer(send)(new=new, now=clock.now(), claim=runner.claim_here())
    await asyncio.to_thread(wait_for, lambda: not runner.active_count(), what="the turn is over")
    return receipt


@on_a_loop
async def test_a_plain_turn_takes_few_statements_and_transactions(alice: User) -> None:
    async with chatting(alice, count=2):
        conversation = await in_database(create_conversation)(user=alice, now=clock.now())
        await take_turn(alice, str(conversation.pk), "Good morning.")  # what the process then knows
        turns = []
        for text in ("Where were we?", "And then?", "What next?"):
            async with counted() as sent:
                receipt = await take_turn(alice, str(conversation.pk), text)
            answer = await Message.objects.aget(pk=receipt.answer_id)
            assert answer.status == Message.Status.COMPLETE
            turns.append(sent)
        cheapest = min(turns, key=len)  # the loops of the process look at the database, too
        begins = [sql for sql in cheapest if sql.startswith("BEGIN")]
        statements = [sql for sql in cheapest if not sql.startswith(("BEGIN", "SAVEPOINT", "RELEASE"))]
        assert len(statements) <= MOST_STATEMENTS[connection.vendor], "\n".join(statements)
        assert len(begins) <= MOST_TRANSACTIONS
