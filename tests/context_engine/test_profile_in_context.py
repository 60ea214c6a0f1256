"""The profile in model requests, and the requests that must not contain it."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation
from chatapp.long_term.actions.profile import write_profile
from chatapp.operations.clock import now
from chatapp.operations.database.threads import in_database
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.context_engine.talking import last_chat

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = {"context_size": 16_000, "max_output_tokens": 2_000}


async def know(user: User, text: str = "- Plays the cello.") -> None:
    await in_database(write_profile)(user_id=user.pk, text=text, now=now())


async def sent(chat: Chat) -> list[dict[str, Any]]:
    await chat.ask()
    return last_chat(chat.server)


@pytest.mark.mechanism("ours.profile", "memory.profile-sent")
@on_a_loop
async def test_the_profile_is_in_every_request_after_the_system_prompt(alice: User) -> None:
    async with chatting(alice, count=400, **SMALL) as chat:
        await know(alice)
        first = await sent(chat)
        assert [message["role"] for message in first[:2]] == ["system", "user"]
        assert first[1]["content"].startswith("<profile>")
        assert "- Plays the cello." in first[1]["content"]
        await chat.work()
        after = await sent(chat)
        assert after[:2] == first[:2], "the prefix outlives a compaction"
        assert after[2]["content"].startswith("<conversation_summary>")


@on_a_loop
async def test_the_inspector_shows_the_profile_as_a_piece_of_its_own(alice: User) -> None:
    async with chatting(alice) as chat:
        await know(alice)
        seen = await chat.see()
        [piece] = [piece for piece in seen["messages"] if piece["source"] == "profile"]
        assert piece["tokens"] == seen["parts"]["profile"] > 0
        assert sum(seen["parts"].values()) == seen["total_tokens"]
        assert seen["policy"]["profile_budget"] == {"value": 1_000, "from": "default"}


@on_a_loop
async def test_a_context_event_reports_the_tokens_of_the_profile(alice: User) -> None:
    async with chatting(alice) as chat:
        await know(alice)
        await chat.ask()
        events = await chat.program.get(f"conversations/{chat.conversation}/messages")
        assert events.status_code == 200
        row = await Conversation.objects.aget(pk=chat.conversation)
        told = await row.events.filter(type="context").alast()
        assert told is not None
        assert told.payload["parts"]["profile"] > 0


@on_a_loop
async def test_a_profile_over_its_budget_is_cut_at_a_line(alice: User) -> None:
    async with chatting(alice) as chat:
        await know(alice, "\n".join(f"- Fact number {number}." for number in range(1_000)))
        piece = (await chat.see())["messages"][1]
        assert piece["source"] == "profile"
        assert 900 < piece["tokens"] <= 1_000
        assert piece["content"].splitlines()[-2].endswith(".")


@pytest.mark.mechanism("memory.profile-off")
@pytest.mark.parametrize("why", ["temporary", "conversation", "agent", "user", "paused", "paused here"])
@on_a_loop
async def test_no_request_contains_a_disabled_profile(alice: User, why: str) -> None:
    async with chatting(alice) as chat:
        await know(alice)
        assert any("cello" in str(message) for message in await sent(chat))
        row = Conversation.objects.filter(pk=chat.conversation)
        if why == "temporary":
            await row.aupdate(temporary=True)
        elif why == "conversation":
            await row.aupdate(context_policy={"profile_budget": 0})
        elif why == "agent":
            agent = await Agent.objects.acreate(name="discreet", context_policy={"profile_budget": 0})
            await row.aupdate(agent=agent)
        elif why == "user":
            await User.objects.filter(pk=alice.pk).aupdate(uses_profile=False)
        elif why == "paused":
            await User.objects.filter(pk=alice.pk).aupdate(memory_paused=True)
        else:
            await row.aupdate(memory=Conversation.Memory.PAUSED)
        assert not any("cello" in str(message) for message in await sent(chat))


@pytest.mark.parametrize("where", ["for all chats", "here", "memory here", "memory"])
@on_a_loop
async def test_a_request_with_the_profile_disabled_equals_one_without_a_profile_byte_for_byte(
    alice: User, where: str
) -> None:
    async with chatting(alice, count=4) as chat:
        here = f"conversations/{chat.conversation}"
        ways = {
            "for all chats": ("memory/settings", {"profile": False}, {"profile": True}),
            "here": (here, {"context_policy": {"profile_budget": 0}}, {"context_policy": {}}),
            "memory here": (here, {"memory": "paused"}, {"memory": "on"}),
            "memory": ("memory/settings", {"paused": True}, {"paused": False}),
        }
        path, off, on = ways[where]

        async def change(what: dict[str, Any]) -> None:
            assert (await chat.program.patch(path, **what)).status_code == 200

        async def answer_anew() -> str:
            said = (await chat.program.get(f"{here}/messages")).json()["items"]
            anew = await chat.post(f"messages/{said[-1]['id']}/regenerate")
            assert anew.status_code == 200, anew.content
            return chat.server.requests_of("chat")[-1].sha256

        await chat.ask()
        without = chat.server.requests_of("chat")[-1].sha256
        assert await answer_anew() == without
        profile = {"markdown": "- Plays the cello."}
        assert (await chat.program.call("PUT", "memory/profile", body=profile)).status_code == 200
        assert await answer_anew() != without
        assert "- Plays the cello." in chat.server.requests_of("chat")[-1].text
        await change(off)
        assert await answer_anew() == without
        await change(on)
        assert await answer_anew() != without


@on_a_loop
async def test_other_users_requests_do_not_contain_the_profile(alice: User, bob: User) -> None:
    async with chatting(bob) as chat:
        await know(alice)
        assert not any("cello" in str(message) for message in await sent(chat))
