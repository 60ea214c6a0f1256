"""The database statements of a plain turn, from the stored message to the finished answer. Limits may only fall."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction

from chatapp.accounts.group_access.models import GroupAccess
from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import GroupRetention, Message
from chatapp.operations import clock
from chatapp.operations.database.statements import execute
from chatapp.operations.database.threads import THREADS, in_database, in_writer
from chatapp.providers.models import ModelConfig
from chatapp.runs import runner
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from tests.context_engine.chatting import chatting, on_a_loop
from tests.servers.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

MOST_STATEMENTS = {"sqlite": 34, "postgresql": 39}
"""PostgreSQL needs separate statements to lock rows."""
MOST_TRANSACTIONS = 3


@asynccontextmanager
async def counted() -> AsyncIterator[list[str]]:
    """Yield the list of statements that the database's threads send."""
    sent: list[str] = []
    everybody = threading.Barrier(THREADS)

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql.strip())
        return execute(sql, params, many, context)

    def begin() -> None:
        # Replace the wrappers, because the writer may be one of these threads.
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


async def cheapest_turn(user: User, conversation_id: str) -> list[str]:
    """Return the statements of the cheapest of several turns, because the process's loops query the database, too."""
    turns = []
    for number in range(4):
        async with counted() as sent:
            receipt = await take_turn(user, conversation_id, f"What next, {number}?")
        answer = await Message.objects.aget(pk=receipt.answer_id)
        assert answer.status == Message.Status.COMPLETE
        turns.append(sent)
    return min(turns[1:], key=len)  # the first turn fills the caches of the process


def without_control(statements: list[str]) -> list[str]:
    return [sql for sql in statements if not sql.startswith(("BEGIN", "SAVEPOINT", "RELEASE"))]


def restrict(user: User) -> None:
    """Give the user a group with a list of models and a retention period."""
    group = Group.objects.create(name="Members")
    user.groups.add(group)
    GroupAccess.objects.create(group=group).models.set(ModelConfig.objects.all())
    GroupRetention.objects.create(group=group, days=30)


@on_a_loop
async def test_a_plain_turn_takes_few_statements_and_transactions(alice: User) -> None:
    async with chatting(alice, count=2):
        conversation = await in_database(create_conversation)(user=alice, now=clock.now())
        plain = await cheapest_turn(alice, str(conversation.pk))
        statements = without_control(plain)
        assert len(statements) <= MOST_STATEMENTS[connection.vendor], "\n".join(statements)
        assert len([sql for sql in plain if sql.startswith("BEGIN")]) <= MOST_TRANSACTIONS


@pytest.mark.postgres
def test_a_repeated_statement_is_prepared_on_its_connection(alice: User) -> None:
    prepared = "SELECT 1 FROM pg_prepared_statements WHERE statement LIKE 'SELECT email FROM%%'"
    with transaction.atomic():  # on one connection
        for _ in range(3):
            execute("SELECT email FROM chatapp_user WHERE id = %s", alice.pk)
        assert execute(prepared).fetchone()


@on_a_loop
async def test_group_restrictions_add_no_statement_to_a_turn(alice: User) -> None:
    async with chatting(alice, count=2):
        conversation = await in_database(create_conversation)(user=alice, now=clock.now())
        await in_database(restrict)(alice)
        statements = without_control(await cheapest_turn(alice, str(conversation.pk)))
        assert len(statements) <= MOST_STATEMENTS[connection.vendor], "\n".join(statements)
