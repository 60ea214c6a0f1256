"""An agent's hooks in a conversation: at the turn's end, with every action, resting for their cooldown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from chatapp import runner
from chatapp.database import in_database
from chatapp.event_log import read_after
from chatapp.models import Agent, Conversation, User
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.context_engine.talking import settle

pytestmark = pytest.mark.django_db(transaction=True)

ALWAYS = {"type": "always"}
Declared = dict[str, Any]


async def give_agent(chat: Chat, *hooks: Declared) -> None:
    agent = await Agent.objects.acreate(name="hooked", hooks=list(hooks))
    await Conversation.objects.filter(pk=chat.conversation).aupdate(agent=agent)


async def ask(chat: Chat, text: str) -> list[Declared]:
    """The messages the model was sent, once the turn is over with its hooks."""
    await chat.ask(text)
    await settle()
    assert not runner.active_count()
    return chat.server.requests_of("chat")[-1].messages


async def fired(chat: Chat) -> list[tuple[str, str]]:
    events = await in_database(read_after)(UUID(chat.conversation), 0)
    return [(event["hook_id"], event["text"]) for event in events if event["type"] == "hook"]


def at_end(action: Declared, condition: Declared = ALWAYS, **more: Any) -> Declared:
    return {"id": "h", "on": "turn_end", "condition": condition, "action": action, **more}


@on_a_loop
async def test_a_message_injected_at_the_turns_end_is_in_the_next_request_and_in_no_other(
    alice: User,
) -> None:
    note = {"type": "inject_message", "message": "Mind the harbour.", "role": "user"}
    async with chatting(alice, count=4) as chat:
        await give_agent(chat, at_end(note, {"type": "message_count", "threshold": 1}, cooldown=3_600))
        first, second, third = [str(await ask(chat, text)) for text in ("One?", "Two?", "Three?")]
        assert ["Mind the harbour." in request for request in (first, second, third)] == [False, True, False]
        assert await fired(chat) == [("h", "Mind the harbour.")]


@on_a_loop
async def test_a_hook_may_do_what_is_registered_by_its_name(alice: User) -> None:
    rename = {
        "type": "module_action",
        "module": "conversation",
        "action": "rename",
        "params": {"title": "Full"},
    }
    async with chatting(alice, count=4) as chat:
        await give_agent(chat, at_end(rename))
        await ask(chat, "One?")
        assert (await Conversation.objects.aget(pk=chat.conversation)).title == "Full"


@on_a_loop
async def test_a_compaction_of_ones_own_keeps_what_it_says_and_no_other_compacts(alice: User) -> None:
    own = {"type": "compact_context", "strategy": "truncate", "keep_recent": 4}
    async with chatting(alice, count=40) as chat:
        await give_agent(chat, at_end(own, {"type": "context_pressure", "threshold": 0.01}, cooldown=60))
        whole = await ask(chat, "One?")
        assert len(whole) == 42
        cut = await ask(chat, "Two?")
        texts = [message["content"] for message in cut]
        assert texts[1] == "[Earlier messages truncated]"
        assert texts[2].startswith("<reminder>")
        assert [text.split()[1] for text in texts if text.startswith("Note")] == ["38", "39"]
        assert texts[-1] == "Two?"
        [row] = await chat.compactions()
        assert (row["strategy"], row["kept_count"]) == ("truncate", 4)
        assert not chat.server.requests_of("summary"), "no model is asked"


@on_a_loop
async def test_a_hook_that_fails_is_told_and_is_not_the_answers_failure(alice: User) -> None:
    async with chatting(alice, count=4) as chat:
        await give_agent(chat, at_end({"type": "module_action", "module": "moon", "action": "land"}))
        await ask(chat, "One?")
        [(hook_id, text)] = await fired(chat)
        assert hook_id == "h"
        assert text.startswith("It failed")
