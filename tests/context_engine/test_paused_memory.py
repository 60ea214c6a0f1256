"""What is said while memory is paused: in its own conversation it counts, elsewhere and later it does not."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry
from tests.context_engine.chatting import Chat, chatting, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "The vault code is 7731-heliotrope."


async def pause(chat: Chat, where: str, *, on: bool) -> None:
    """Pause memory from now on, or with `on=False` end the pause."""
    if where == "everywhere":
        answer = await chat.program.patch("memory/settings", paused=on)
    else:
        memory = "paused" if on else "on"
        answer = await chat.program.patch(f"conversations/{chat.conversation}", memory=memory)
    assert answer.status_code == 200, answer.content


async def entries() -> list[str]:
    return [row.text async for row in MemoryEntry.objects.order_by("created_at")]


@pytest.mark.mechanism("memory.paused")
@pytest.mark.parametrize("where", ["everywhere", "here"])
@on_a_loop
async def test_what_was_said_off_the_record_is_not_learned_when_the_pause_is_over(
    alice: User, where: str
) -> None:
    async with chatting(alice, count=4) as chat:
        await chat.ask("My dog is called Rex-2041.")
        await pause(chat, where, on=True)
        await chat.ask(SECRET)
        await pause(chat, where, on=False)
        for number in range(6):
            await chat.ask(f"Order INV-{number}00 is due.")
        row = await chat.compact(keep="everything")
        assert row["status"] == "done"
        [learned] = await entries()
        assert "Rex-2041" in learned
        assert "heliotrope" not in learned
        for number in range(6, 12):
            await chat.ask(f"Order INV-{number}00 is due.")
        await chat.compact()
        assert "heliotrope" not in "".join(await entries()), "nor from the summary that was built upon"


@on_a_loop
async def test_during_a_pause_contexts_are_summarised_and_nothing_is_written(alice: User) -> None:
    async with chatting(alice, count=40) as chat:
        await pause(chat, "here", on=True)
        row = await chat.compact()
        assert row["status"] == "done"
        assert await entries() == []
        assert "conversation_summary" in str(await chat.see())


@pytest.mark.mechanism("memory.temporary")
@on_a_loop
async def test_temporary_conversations_write_no_entry(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        made: Any = await chat.program.post("conversations", temporary=True)
        secret = Chat(chat.program, chat.server, made.json()["id"])
        for _ in range(8):
            await secret.ask(SECRET)
        row = await secret.compact()
        assert row["status"] == "done"
        assert await entries() == []
        found = await chat.program.get("memory/search", q="heliotrope")
        assert found.json()["items"] == []


async def elsewhere(chat: Chat, **fields: Any) -> Chat:
    """Return another conversation of the same user."""
    made = await chat.program.post("conversations", **fields)
    return Chat(chat.program, chat.server, made.json()["id"])


async def recalled(chat: Chat, question: str = "What is the vault code?") -> str:
    return str((await chat.see(question))["recalled"])


@pytest.mark.parametrize("where", ["everywhere", "here"])
@on_a_loop
async def test_what_was_said_off_the_record_comes_back_in_its_own_conversation_alone(
    alice: User, where: str
) -> None:
    async with chatting(alice, count=4) as chat:
        other = await elsewhere(chat)
        await pause(chat, where, on=True)
        await chat.ask(SECRET)
        await pause(chat, where, on=False)
        assert "7731" not in await recalled(other)
        await chat.ask("The vault is in Lisbon.")
        assert "Lisbon" in await recalled(other, "Where is the vault?"), "what was said after the pause does"
        for number in range(8):
            await chat.ask(f"Order INV-{number}00 is due.")
        await chat.compact()
        assert "7731" in await recalled(chat)


@pytest.mark.mechanism("memory.paused")
@pytest.mark.parametrize("where", ["everywhere", "here"])
@on_a_loop
async def test_while_memory_is_paused_nothing_of_another_conversation_is_recalled(
    alice: User, where: str
) -> None:
    async with chatting(alice, count=4) as chat:
        other = await elsewhere(chat)
        await other.ask(SECRET)
        assert "7731" in await recalled(chat)
        await pause(chat, where, on=True)
        assert "7731" not in await recalled(chat)
        await pause(chat, where, on=False)
        assert "7731" in await recalled(chat)


@pytest.mark.mechanism("memory.temporary")
@on_a_loop
async def test_temporary_conversations_are_told_nothing(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        await chat.ask(SECRET)
        other = await elsewhere(chat, temporary=True)
        assert "7731" not in str(await other.see("What is the vault code?"))
