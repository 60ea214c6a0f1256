"""Pinned messages stay in context, however long the conversation becomes."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.realtime.models import Event
from tests.context_engine.chatting import Chat, chatting, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)


async def message_at(chat: Chat, position: int) -> str:
    return str((await Message.objects.aget(conversation_id=chat.conversation, position=position)).pk)


async def pin(chat: Chat, position: int, pinned: bool = True) -> Any:
    path = f"conversations/{chat.conversation}/messages/{await message_at(chat, position)}"
    return await chat.program.patch(path, pinned=pinned)


def ids_in(seen: dict[str, Any]) -> list[str]:
    return [piece["message_id"] for piece in seen["messages"] if piece["source"] == "history"]


@on_a_loop
async def test_pinning_and_unpinning_are_announced_by_events(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        pinned = await pin(chat, 1)
        assert (pinned.status_code, pinned.json()["pinned"]) == (200, True)
        assert (await pin(chat, 1)).status_code == 200
        assert (await pin(chat, 1, pinned=False)).json()["pinned"] is False
        facts = Event.objects.filter(type="message.pinned").order_by("seq")
        told = [fact.payload["message"]["pinned"] async for fact in facts]
        assert told == [True, False]


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.pins")
@on_a_loop
async def test_pinned_messages_stay_in_view_after_a_summary_in_their_order(alice: User) -> None:
    async with chatting(alice) as chat:
        for position in (9, 4):
            assert (await pin(chat, position)).status_code == 200
        await chat.compact()
        seen = await chat.see()
        # A pinned reply keeps the question that it answers.
        expected = [await message_at(chat, position) for position in (4, 8, 9)]
        assert ids_in(seen)[:3] == expected
        assert len(ids_in(seen)) < 20
        assert sum(piece["tokens"] for piece in seen["messages"]) == seen["total_tokens"]
        await pin(chat, 4, pinned=False)
        assert ids_in(await chat.see())[:2] == expected[1:]


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.pins")
@on_a_loop
async def test_pins_over_half_of_the_budget_are_dropped_oldest_first(alice: User) -> None:
    async with chatting(alice, count=40, context_size=16_000, max_output_tokens=2_000) as chat:
        await Message.objects.filter(conversation_id=chat.conversation, position__lt=12).aupdate(
            token_estimate=1_000, pinned=True
        )
        await chat.compact()
        seen = await chat.see()
        kept = ids_in(seen)
        assert await message_at(chat, 11) in kept
        assert await message_at(chat, 0) not in kept
        assert seen["messages"][-1]["content"] == "And now?"


@on_a_loop
async def test_clearing_the_context_removes_pinned_messages_too(alice: User) -> None:
    async with chatting(alice) as chat:
        await pin(chat, 4)
        assert (await chat.post("context/clear")).status_code == 200
        assert ids_in(await chat.see()) == []


@on_a_loop
async def test_pinning_a_tool_message_or_sending_an_invalid_value_returns_422(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        await Message.objects.filter(conversation_id=chat.conversation, position=1).aupdate(role="tool")
        assert (await pin(chat, 1)).status_code == 422
        path = f"conversations/{chat.conversation}/messages/{await message_at(chat, 0)}"
        assert (await chat.program.patch(path, pinned="maybe")).status_code == 422


@on_a_loop
async def test_pinning_another_users_message_returns_404(alice: User, charlie: User) -> None:
    async with chatting(alice, count=4) as chat:
        theirs = f"conversations/{chat.conversation}/messages/{await message_at(chat, 0)}"
    async with chatting(charlie, count=2, name="Other", is_default=False) as other:
        assert (await other.program.patch(theirs, pinned=True)).status_code == 404
