"""The tokens and money that compaction and the provider's cache save, in the ledger."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.providers.models import Usage
from chatapp.realtime.models import Event
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

PRICES = {"input_price": "2.00", "cached_price": "0.50", "output_price": "8.00"}


async def spent_on_chat(chat: Chat) -> dict[str, Any]:
    answer = await chat.program.get("usage", group_by="purpose")
    assert answer.status_code == 200, answer.content
    return next(row for row in answer.json()["items"] if row["key"] == "chat")


@pytest.mark.mechanism("ours.saved")
@on_a_loop
async def test_the_ledger_has_the_tokens_that_a_summary_keeps_out_of_a_request_and_their_price(
    alice: User,
) -> None:
    silent = says("Good.", sends_usage=False)  # no usage to learn from, so all counts are estimates
    async with chatting(alice, server=ModelServer(default=silent, summary_default=silent), **PRICES) as chat:
        await chat.ask()
        assert (await spent_on_chat(chat))["kept_out_tokens"] == 0
        whole = await chat.see()
        await chat.compact()
        await chat.ask()
        told = await Event.objects.filter(type="context").alast()
        spent = await spent_on_chat(chat)
        left = whole["total_tokens"] - told.payload["used_tokens"]
        assert spent["kept_out_tokens"] == pytest.approx(left, abs=2)
        assert left > 500
        assert spent["compaction_saved"] == pytest.approx(spent["kept_out_tokens"] * 2.00 / 1e6)


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.saved")
@on_a_loop
async def test_cache_savings_are_the_difference_between_input_and_cached_price(alice: User) -> None:
    async with chatting(alice, count=4, **PRICES) as chat:
        chat.server.script(says("Good.", prompt_tokens=1_000, cached_tokens=800))
        await chat.ask()
        spent = await spent_on_chat(chat)
        assert spent["cached_tokens"] == 800
        assert spent["cache_saved"] == pytest.approx(800 * (2.00 - 0.50) / 1e6)
        assert spent["compaction_saved"] == 0


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.saved")
@on_a_loop
async def test_compaction_never_saves_more_than_the_window_would_have_held(alice: User) -> None:
    async with chatting(alice, count=40, context_size=16_000, max_output_tokens=2_000) as chat:
        await Message.objects.filter(conversation_id=chat.conversation).aupdate(token_estimate=5_000)
        await chat.ask()
        row = await Usage.objects.aget(purpose="chat")
        assert 0 < row.kept_out_tokens <= 16_000 - 2_000 - 4_000


@pytest.mark.sqlite
@on_a_loop
async def test_messages_that_the_user_cleared_do_not_count_as_saved(alice: User) -> None:
    async with chatting(alice) as chat:
        assert (await chat.post("context/clear")).status_code == 200
        await chat.ask()
        assert (await spent_on_chat(chat))["kept_out_tokens"] == 0


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.context-event")
@on_a_loop
async def test_context_events_report_the_estimate_and_then_the_providers_count(alice: User) -> None:
    async with chatting(alice, count=20) as chat:
        chat.server.script(says("Good.", prompt_tokens=1_234))
        await chat.ask()
        told = [row.payload async for row in Event.objects.filter(type="context").order_by("seq")]
        assert [one["exact"] for one in told] == [False, True]
        assert told[1]["used_tokens"] == 1_234
        for one in told:
            assert sum(one["parts"].values()) == one["used_tokens"]
            assert min(one["parts"].values()) >= 0
