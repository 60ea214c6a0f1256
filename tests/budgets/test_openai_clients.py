"""Under /v1 an exhausted budget is OpenAI's `insufficient_quota`, whether or not the server stores the conversation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from chatapp.accounts.budgets.models import BudgetPeriod
from chatapp.accounts.models import User
from chatapp.forgetting.accounts import delete_account
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import Usage
from tests.api.running import wait_for_words
from tests.context_engine.chatting import chatting, on_a_loop
from tests.servers.behaviour import says
from tests.servers.embeddings_server import EmbeddingsServer
from tests.servers.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/v1/chat/completions"
HELLO = {"model": "Main", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.mechanism("ours.budget-stop")
@on_a_loop
async def test_a_call_counts_and_the_next_one_is_refused_without_a_retry(
    alice: User, set_budget: Callable[..., Any]
) -> None:
    async with chatting(alice, count=2) as chat:
        await in_database(set_budget)("every_user", tokens=1_000)
        chat.server.script(says("Hi.", prompt_tokens=1_200))
        assert (await chat.program.post(ADDRESS, **HELLO)).status_code == 200
        row = await BudgetPeriod.objects.aget()
        assert row.used_tokens > 1_200
        assert row.held_tokens == 0
        asked = len(chat.server.requests)
        for headers, more in (({}, {}), ({"X-Conversation-Id": "new"}, {}), ({}, {"stream": True})):
            answer = await chat.program.post(ADDRESS, headers=headers, **HELLO, **more)
            assert answer.status_code == 429, answer.content
            assert answer.headers["x-should-retry"] == "false"
            assert 1 <= int(answer.headers["retry-after"]) <= 24 * 3600
            assert answer.error["code"] == "insufficient_quota"
            assert answer.error["message"].startswith("Your budget of 1,000 tokens a day is used up until ")
        assert len(chat.server.requests) == asked


@on_a_loop
async def test_a_call_whose_account_is_deleted_meanwhile_returns_409(alice: User) -> None:
    async with chatting(alice, count=2) as chat:
        chat.server.script(says("Hi.", hold_after=1))
        asking = asyncio.ensure_future(chat.program.post(ADDRESS, **HELLO))
        await wait_for_words(chat.server)
        await in_database(delete_account)(alice, now=clock.now())
        chat.server.release()
        assert (await asking).status_code == 409


@on_a_loop
async def test_embeddings_count_although_the_client_disconnected(
    alice: User, set_budget: Callable[..., Any]
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    class SlowServer(EmbeddingsServer):
        def vector(self, text: str) -> list[float]:
            asked.set()
            may_answer.wait()
            return super().vector(text)

    async with chatting(alice, count=2) as chat:
        await in_database(set_budget)("every_user", tokens=1_000)
        with (
            SlowServer({}) as server,
            override_settings(EMBEDDINGS_BASE_URL=server.base_url, EMBEDDINGS_MODEL="test-vectors"),
        ):
            fields = {"model": "test-vectors", "input": ["parrot", "owl"]}
            calling = asyncio.ensure_future(chat.program.post("/v1/embeddings", **fields))
            await asyncio.to_thread(asked.wait)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            may_answer.set()
            written = Usage.objects.filter(user=alice, purpose="embedding", input_tokens__gt=0)
            await in_database(wait_for)(written.exists, what="the row in the ledger")
        row = await BudgetPeriod.objects.aget()
        assert row.used_tokens > 0
        assert row.held_tokens == 0
