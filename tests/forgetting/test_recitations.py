"""Memory learns what a user says, even if it was recalled, but not what an answer only repeats from a recall."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry
from tests.context_engine.chatting import Chat, chatting, on_a_loop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

LONG = (
    "We talked about the regatta for a while, and of how the wind turned north in the afternoon, which nobody in the"
    " harbour had expected after such a still morning with hardly a ripple. My sloop is called Halcyon-2041."
)
ASKED = "What is my sloop called, the one of the regatta?"


async def learned(user: User, of: str) -> str:
    rows = MemoryEntry.objects.filter(user=user, conversation=of)
    return "\n".join([row.text async for row in rows])


async def go_on(chat: Chat) -> None:
    for number in range(6):
        await chat.ask(f"Order INV-{number}00 is due.")


@pytest.mark.mechanism("memory.recalled")
@on_a_loop
async def test_recalled_text_that_an_answer_repeats_is_not_learned_again(alice: User) -> None:
    async with chatting(alice, count=4) as first:
        await first.ask(LONG)
        made = await first.program.post("conversations")
        second = Chat(first.program, first.server, made.json()["id"])
        first.server.script("Your sloop is called Halcyon-2041.")
        await second.ask(ASKED)
        assert "Halcyon-2041" in first.server.requests_of("chat")[-1].text
        await go_on(second)
        assert (await second.compact())["status"] == "done"
        assert "INV-000" in await learned(alice, second.conversation)
        assert "Halcyon" not in await learned(alice, second.conversation)


@pytest.mark.mechanism("memory.recalled")
@on_a_loop
async def test_a_fact_that_the_user_repeats_is_learned_although_it_was_recalled(alice: User) -> None:
    async with chatting(alice, count=4) as first:
        wish = "Please remember that my sloop is called Halcyon-2041."
        await first.ask(wish)
        made = await first.program.post("conversations")
        second = Chat(first.program, first.server, made.json()["id"])
        await second.ask(wish)
        assert first.server.requests_of("chat")[-1].text.count("Halcyon-2041") > 1, "it was recalled"
        await go_on(second)
        assert (await second.compact())["status"] == "done"
        assert "Halcyon-2041" in await learned(alice, second.conversation)


@pytest.mark.mechanism("memory.recalled")
@on_a_loop
async def test_a_fact_recalled_before_its_own_span_was_summarised_is_learned(alice: User) -> None:
    async with chatting(alice, count=2, context_size=12_000, max_output_tokens=1_000) as chat:
        await chat.ask(LONG)
        for number in range(9):
            await chat.ask(f"{number}: " + "The harbour was quiet and the bread was cheap that day. " * 70)
        await chat.ask(ASKED)
        said = (await chat.program.get(f"conversations/{chat.conversation}/messages", limit=100)).json()[
            "items"
        ]
        first = next(row for row in said if row["content"] == LONG)
        assert any(first["id"] in str(row.get("recalled")) for row in said), "it had left the view"
        while (row := await waiting(chat)) is not None:
            await chat.work(row)
        assert "Halcyon-2041" in await learned(alice, chat.conversation)


async def waiting(chat: Chat) -> str | None:
    rows = [row for row in await chat.compactions() if row["status"] == "pending"]
    return str(rows[0]["id"]) if rows else None
