"""Messages sent while memory is paused: only their own conversation recalls them, and memory never learns them."""

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
async def test_messages_sent_during_a_pause_are_not_learned_after_it(alice: User, where: str) -> None:
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
async def test_compaction_during_a_pause_summarises_but_writes_no_memory(alice: User) -> None:
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
async def test_messages_sent_during_a_pause_are_recalled_only_in_their_own_conversation(
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
async def test_nothing_is_recalled_from_other_conversations_during_a_pause(alice: User, where: str) -> None:
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
async def test_temporary_conversations_recall_nothing_from_other_conversations(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        await chat.ask(SECRET)
        other = await elsewhere(chat, temporary=True)
        assert "7731" not in str(await other.see("What is the vault code?"))
