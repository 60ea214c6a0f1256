"""Pinned messages: the user's word that something stays in context, however long the conversation becomes."""

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
async def test_a_pin_is_told_to_every_tab_and_can_be_taken_away(alice: User) -> None:
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
async def test_what_was_pinned_stays_in_view_behind_a_summary_in_its_order(alice: User) -> None:
    async with chatting(alice) as chat:
        for position in (9, 4):
            assert (await pin(chat, position)).status_code == 200
        await chat.compact()
        seen = await chat.see()
        # A pinned reply has the question it answers before it.
        expected = [await message_at(chat, position) for position in (4, 8, 9)]
        assert ids_in(seen)[:3] == expected
        assert len(ids_in(seen)) < 20
        assert sum(piece["tokens"] for piece in seen["messages"]) == seen["total_tokens"]
        await pin(chat, 4, pinned=False)
        assert ids_in(await chat.see())[:2] == expected[1:]


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.pins")
@on_a_loop
async def test_pins_of_more_than_half_of_the_budget_give_way_oldest_first(alice: User) -> None:
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
async def test_what_was_pinned_before_the_context_was_cleared_is_cleared(alice: User) -> None:
    async with chatting(alice) as chat:
        await pin(chat, 4)
        assert (await chat.post("context/clear")).status_code == 200
        assert ids_in(await chat.see()) == []


@on_a_loop
async def test_what_is_no_utterance_cannot_be_pinned(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        await Message.objects.filter(conversation_id=chat.conversation, position=1).aupdate(role="tool")
        assert (await pin(chat, 1)).status_code == 422
        path = f"conversations/{chat.conversation}/messages/{await message_at(chat, 0)}"
        assert (await chat.program.patch(path, pinned="maybe")).status_code == 422


@on_a_loop
async def test_pinning_what_is_not_yours_is_404(alice: User, charlie: User) -> None:
    async with chatting(alice, count=4) as chat:
        theirs = f"conversations/{chat.conversation}/messages/{await message_at(chat, 0)}"
    async with chatting(charlie, count=2, name="Other", is_default=False) as other:
        assert (await other.program.patch(theirs, pinned=True)).status_code == 404
