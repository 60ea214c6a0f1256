"""An exhausted budget refuses requests before the model is called, and the error says when the budget resets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from chatapp.accounts.budgets.models import Budget, BudgetPeriod
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import Usage
from tests.api.running import new_conversation, read_all, send, wait_for_end
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

SetBudget = Callable[..., Any]
SENTENCE = "Your budget of 1,000 tokens a day is used up until "


async def exhaust(chat: Chat, set_budget: SetBudget) -> None:
    await in_database(set_budget)("every_user", tokens=1_000)
    chat.server.script(says("An answer.", prompt_tokens=1_000))
    await chat.ask()


@pytest.mark.mechanism("ours.budget-stop")
@on_a_loop
async def test_a_message_is_refused_with_the_reset_time_and_without_a_model_call(
    alice: User, set_budget: SetBudget
) -> None:
    async with chatting(alice, count=2) as chat:
        await exhaust(chat, set_budget)
        asked = len(chat.server.requests)
        answer = await send(chat.program, chat.conversation)
        assert answer.status_code == 429
        error = answer.json()["error"]
        assert error["code"] == "budget_exhausted"
        assert error["message"].startswith(SENTENCE)
        assert error["message"].endswith("00:00 UTC; your message is stored. Press Retry then.")
        assert 1 <= int(answer.headers["retry-after"]) <= 24 * 3600
        assert error["details"]["message"]["status"] == "failed"
        assert len(chat.server.requests) == asked


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.budget-stop")
@on_a_loop
async def test_a_stream_ends_with_the_refusal_and_a_larger_budget_allows_a_retry(
    alice: User, set_budget: SetBudget
) -> None:
    async with chatting(alice, count=2) as chat:
        await exhaust(chat, set_budget)
        events = await read_all(await send(chat.program, chat.conversation, stream=True))
        last = events[-1]
        assert last.type == "run.finished"
        assert last.data["error"]["category"] == "budget"
        assert last.data["error"]["message"].startswith(SENTENCE)
        failed = next(event for event in events if event.type == "message.completed").data["message"]
        await in_database(Budget.objects.update)(tokens=100_000)
        again = await chat.post(f"messages/{failed['id']}/regenerate")
        assert again.status_code == 200, again.content


@pytest.mark.mechanism("ours.budget-exact")
@on_a_loop
async def test_only_as_many_concurrent_messages_are_answered_as_the_budget_allows(
    alice: User, set_budget: SetBudget
) -> None:
    held = Behaviour(text="An answer.", hold_after=0)
    async with chatting(alice, count=2, server=ModelServer(default=held)) as chat:
        budget = await in_database(set_budget)("every_user", tokens=10**9)
        homes = [await new_conversation(chat.program, temporary=True) for _ in range(13)]
        first = asyncio.create_task(send(chat.program, homes.pop()))
        await asyncio.to_thread(chat.server.wait_until, lambda server: len(server.requests) == 1)
        row = await BudgetPeriod.objects.aget()
        budget.tokens = 5 * row.held_tokens
        await in_database(budget.save)()
        sends = [asyncio.create_task(send(chat.program, home)) for home in homes]
        await asyncio.to_thread(chat.server.wait_until, lambda server: len(server.requests) == 5)
        refused = 0
        while refused < 8:
            done, _ = await asyncio.wait([first, *sends], return_when=asyncio.FIRST_COMPLETED)
            refused += len(done)
            sends = [task for task in sends if task not in done]
            assert {task.result().status_code for task in done} == {429}
        chat.server.release()
        answered = await asyncio.gather(first, *sends)
        assert [answer.status_code for answer in answered] == [200] * 5
        await row.arefresh_from_db()
        spent = [usage.input_tokens + usage.output_tokens async for usage in Usage.objects.all()]
        assert (row.held_tokens, row.used_tokens) == (0, sum(spent))


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.budget-warning")
@on_a_loop
async def test_reaching_80_percent_of_a_budget_is_announced_once_in_the_conversation(
    alice: User, set_budget: SetBudget
) -> None:
    async with chatting(alice, count=2) as chat:
        await in_database(set_budget)("every_user", tokens=10_000)
        chat.server.script(says("One.", prompt_tokens=8_000), says("Two.", prompt_tokens=100))
        told = []
        for _ in range(2):
            events = await read_all(await send(chat.program, chat.conversation, stream=True))
            told.append([event.data["text"] for event in events if event.type == "run.notice"])
        assert [len(texts) for texts in told] == [1, 0]
        assert told[0][0].startswith("80 % of your budget of 10,000 tokens a day is used.")
        report = (await chat.program.get("usage")).json()
        [state] = report["budgets"]
        assert state["period"] == "day"
        assert state["tokens"] == 10_000
        assert 8_100 < state["used_tokens"] < 8_200
        assert state["is_warned"] is True
        assert state["resets_at"].endswith("T00:00:00Z")


@pytest.mark.sqlite
@on_a_loop
async def test_a_summary_counts_and_an_exhausted_budget_prevents_its_model_call(
    alice: User, set_budget: SetBudget
) -> None:
    async with chatting(alice) as chat:
        budget = await in_database(set_budget)("every_user", tokens=10**6)
        await chat.compact()
        used = (await BudgetPeriod.objects.aget()).used_tokens
        spent = await Usage.objects.aget(purpose="compaction")
        assert used == spent.input_tokens + spent.output_tokens > 0
        await chat.ask()
        await chat.ask()
        budget.tokens = 1
        await in_database(budget.save)()
        asked = len(chat.server.requests)
        made = await chat.compact()
        assert made["status"] == "done"
        row = await Compaction.objects.aget(pk=made["id"])
        assert "budget" in row.fallback_reason
        assert len(chat.server.requests) == asked


@on_a_loop
async def test_a_stopped_answer_releases_its_hold_and_counts_its_usage(
    alice: User, set_budget: SetBudget
) -> None:
    slow = Behaviour(text="One two three four five six.", hold_after=4)
    async with chatting(alice, count=2, server=ModelServer(default=slow)) as chat:
        await in_database(set_budget)("every_user", tokens=10**6)
        asked = await chat.program.post(
            f"conversations/{chat.conversation}/messages",
            headers={"prefer": "respond-async"},
            content="Hello",
        )
        await asyncio.to_thread(
            chat.server.wait_until,
            lambda server: server.requests and "first_token" in server.requests[-1].times,
        )
        run_id = asked.json()["run_id"]
        await chat.program.post(f"runs/{run_id}/stop")
        assert (await wait_for_end(chat.program, run_id))["status"] == "stopped"
        row, usage = await BudgetPeriod.objects.aget(), await Usage.objects.aget()
        assert row.held_tokens == 0
        assert row.used_tokens == usage.input_tokens + usage.output_tokens > 100


@on_a_loop
async def test_an_answer_stopped_before_its_first_word_counts_its_input_tokens(
    alice: User, set_budget: SetBudget
) -> None:
    silent = Behaviour(text="One two three.", hold_after=0)
    async with chatting(alice, count=20, server=ModelServer(default=silent)) as chat:
        await in_database(set_budget)("every_user", tokens=10**6)
        asked = await chat.program.post(
            f"conversations/{chat.conversation}/messages",
            headers={"prefer": "respond-async"},
            content="Hello",
        )
        await asyncio.to_thread(chat.server.wait_until, lambda server: server.requests)
        run_id = asked.json()["run_id"]
        await chat.program.post(f"runs/{run_id}/stop")
        assert (await wait_for_end(chat.program, run_id))["status"] == "stopped"
        row = await BudgetPeriod.objects.aget()
        assert row.held_tokens == 0
        assert row.used_tokens > 20, "the provider read the request, and charges for that"


@pytest.mark.sqlite
@pytest.mark.parametrize("problem", ["quota", "wrong_key", "overflow_openai"])
def test_a_request_that_the_provider_refuses_costs_nothing(
    alice: User, set_budget: SetBudget, problem: str
) -> None:
    async def ask() -> None:
        async with chatting(alice, count=2, server=ModelServer(default=ERRORS[problem]())) as chat:
            await in_database(set_budget)("every_user", tokens=10**6)
            assert (await send(chat.program, chat.conversation)).status_code == 502
            row = await BudgetPeriod.objects.aget()
            assert (row.held_tokens, row.used_tokens) == (0, 0)

    asyncio.run(ask())
