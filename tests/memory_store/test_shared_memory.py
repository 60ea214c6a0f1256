"""The memory that an agent shares: opened by an operator, recalled for all its users, separate from private memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client, override_settings

from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.accounts.actions import create_token
from chatapp.accounts.group_access.models import GroupAccess
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.context.tools import registry
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads
from chatapp.forgetting.services import forget_entry
from chatapp.long_term.models import MemoryEntry, Profile
from chatapp.operations.database.forgetting_counts import check_forgetting_count, read_forgetting_count
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import ReadForgotten
from chatapp.recall.actions.indexing import index_conversation
from memory.types import ToolResultPart
from tests.api.program import Program
from tests.api.running import running_service
from tests.context_engine.chatting import Chat, make_model, on_a_loop
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import NOW
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "The gate code of the depot is 7731-heliotrope."
ASKED = "What is the gate code of the depot?"
ALICES = "My bank card has the number 9152-celadon."
SHORT = {"keep_recent": 2, "reserve_ratio": 0.01}
"""Makes messages leave the context early."""
Clients = Callable[..., Client]


@dataclass
class House:
    """A service, its scripted model, and an agent that shares its memory."""

    server: ModelServer
    agent: Agent

    async def chat(self, user: User, agent: str = "Porter", **fields: Any) -> Chat:
        _, secret = await in_database(create_token)(user=user, name="test", scopes=["chat", "read", "memory"])
        program = Program({"authorization": f"Bearer {secret}"})
        made = await program.post("conversations", agent=agent, context_policy=SHORT, **fields)
        assert made.status_code == 201, made.content
        return Chat(program, self.server, made.json()["id"])

    async def tell(self, user: User, said: str = SAID, agent: str = "Porter", **fields: Any) -> Chat:
        """Say the text and compact the chat, so that the text leaves the context."""
        chat = await self.say(user, said, agent, **fields)
        assert (await chat.compact())["status"] == "done"
        return chat

    async def say(self, user: User, said: str = SAID, agent: str = "Porter", **fields: Any) -> Chat:
        chat = await self.chat(user, agent, **fields)
        await chat.ask(said)
        for number in range(2):
            await chat.ask(f"Order INV-{number}00 is due.")
        return chat


@asynccontextmanager
async def house(**sharing: Any) -> AsyncIterator[House]:
    with ModelServer() as server, override_settings(DEFAULT_TOOLS=[]):
        await in_database(make_model)(server, name="Main", is_default=True)
        agent = await Agent.objects.acreate(name="Porter", **{"shares_memory": True} | sharing)
        async with running_service():
            yield House(server, agent)


def allow_only(user: User, agent: Agent) -> None:
    """Deny the user all other agents of operators."""
    group = Group.objects.create(name="Gardeners")
    group.user_set.add(user)
    GroupAccess.objects.create(group=group).agents.add(agent)


async def recalled(chat: Chat, question: str = ASKED) -> list[dict[str, Any]]:
    return list((await chat.see(question))["recalled"])


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.shared-private")
@on_a_loop
async def test_a_statement_of_one_user_is_recalled_for_another_and_marked_as_shared(
    alice: User, bob: User
) -> None:
    async with house() as porter:
        await porter.tell(bob)
        entry = await MemoryEntry.objects.aget(user=bob)
        chat = await porter.chat(alice)
        answer = await chat.ask(ASKED)
        assert "7731-heliotrope" in porter.server.requests_of("chat")[-1].text
        events = await chat.program.get(f"conversations/{chat.conversation}/messages")
        [item] = events.json()["items"][-1]["recalled"]
        assert item["source"] == {"kind": "shared", "entry_id": str(entry.pk), "day": entry.day.isoformat()}
        assert answer["message"]["status"] == "complete"


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.shared-private")
@on_a_loop
async def test_shared_entries_are_not_accessible_outside_chats_with_the_agent(
    alice: User, bob: User, charlie: User
) -> None:
    async with house() as porter:
        await porter.tell(bob)
        entry = await MemoryEntry.objects.aget(user=bob)
        await porter.chat(alice)
        for user in (alice, charlie):
            other = await porter.chat(user, agent="default")
            assert await recalled(other) == []
            assert (await other.program.get("memory/search", q="heliotrope")).json()["items"] == []
            assert (await other.program.get("memory/days")).json()["items"] == []
            assert (await other.program.get(f"memory/entries/{entry.pk}/history")).status_code == 404
            assert (await other.program.delete(f"memory/entries/{entry.pk}")).status_code == 404
        assert (await porter.chat(bob, agent="default")) is not None
        assert await MemoryEntry.objects.filter(pk=entry.pk).aexists()


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.shared-private")
@on_a_loop
async def test_private_memory_is_not_used_in_chats_with_shared_memory(alice: User, bob: User) -> None:
    async with house() as porter:
        private = await porter.tell(alice, ALICES, agent="default")
        await Profile.objects.acreate(user=alice, text="- Keeps a celadon vase", version=1)
        assert "9152" in str(await recalled(await porter.chat(alice, "default"), "My bank card number?"))
        chat = await porter.chat(alice)
        await chat.ask("What is the number of my bank card?")
        assert "celadon" not in porter.server.requests_of("chat")[-1].text
        entry = await MemoryEntry.objects.aget(user=alice)
        message = (await chat.program.get(f"conversations/{private.conversation}/messages")).json()["items"][
            0
        ]
        caller = ToolCaller(str(alice.pk), chat.conversation, "")
        found = await use("memory_search", caller, query="number of my bank card")
        assert "celadon" not in found
        for wanted in ({"day": entry.day}, {"entry_id": str(entry.pk)}, {"message_id": message["id"]}):
            with pytest.raises(ToolFailure):
                await use("memory_read", caller, **wanted)


@pytest.mark.sqlite
@on_a_loop
async def test_a_newer_private_statement_is_not_shown_in_a_chat_with_shared_memory(alice: User) -> None:
    """The newer statement is from a private chat, although the older one was made in the shared one."""
    async with house() as porter:
        chat = await porter.tell(alice, "I live in Ghent, near the depot.")
        private = await porter.chat(alice, "default")
        await private.ask("I moved to Lisbon, into Celadon Street.")
        for one in (chat, private):
            await in_database(index_conversation)(one.conversation)
        await chat.ask("In which town do I live?")
        sent = porter.server.requests_of("chat")[-1].text
        assert "user: I live in Ghent" in sent
        assert "Celadon" not in sent


async def use(tool: str, caller: ToolCaller, **arguments: Any) -> str:
    return (await registry.BUILT_IN[tool].call(arguments, caller)).text


@pytest.mark.sqlite
@on_a_loop
async def test_tools_read_shared_entries_without_their_sources(alice: User, bob: User) -> None:
    async with house() as porter:
        told = await porter.tell(bob)
        entry = await MemoryEntry.objects.aget(user=bob)
        caller = ToolCaller(str(alice.pk), (await porter.chat(alice)).conversation, "")
        found = await use("memory_search", caller, query=ASKED)
        read = await use("memory_read", caller, entry_id=str(entry.pk))
        for text in (found, read):
            assert "7731-heliotrope" in text
            assert told.conversation not in text
            assert str(entry.first_message_id) not in text


@pytest.mark.sqlite
@on_a_loop
async def test_a_conversation_with_messages_stays_private_or_shared(alice: User, bob: User) -> None:
    async with house() as porter:
        begun = await porter.chat(alice, "default")
        await begun.program.patch(f"conversations/{begun.conversation}", agent="Porter")
        assert (await shape_of(begun))["shared_memory_of"] == "Porter", "nothing was said yet"
        private = await porter.chat(alice, "default")
        await private.ask(ALICES)
        await private.program.patch(f"conversations/{private.conversation}", agent="Porter")
        assert (await shape_of(private))["shared_memory_of"] is None
        for number in range(2):
            await private.ask(f"Order INV-{number}00 is due.")
        assert (await private.compact())["status"] == "done"
        assert await recalled(await porter.chat(bob), "The number of the bank card?") == []
        shared = await porter.tell(bob)
        refused = await shared.program.patch(f"conversations/{shared.conversation}", agent="default")
        assert (refused.status_code, refused.error["code"]) == (409, "conflict")


async def shape_of(chat: Chat) -> dict[str, Any]:
    return dict((await chat.program.get(f"conversations/{chat.conversation}")).json())


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.shared-opened")
@pytest.mark.parametrize("how", ["closed", "switched off", "taken away"])
@on_a_loop
async def test_closing_a_shared_memory_hides_it_and_private_memory_stays_apart(
    alice: User, bob: User, how: str
) -> None:
    async with house() as porter:
        await porter.tell(bob)
        chat = await porter.chat(alice)
        assert "7731" in str(await recalled(chat))
        await porter.tell(alice, ALICES, agent="default")
        if how == "taken away":
            await in_database(allow_only)(alice, await Agent.objects.acreate(name="Gardener"))
        else:
            closing = {"shares_memory": False} if how == "closed" else {"enabled": False}
            await Agent.objects.filter(pk=porter.agent.pk).aupdate(**closing)
        assert await recalled(chat) == []
        assert await recalled(chat, "The number of my bank card?") == [], "it may be opened again"


@pytest.mark.sqlite
@pytest.mark.parametrize("how", ["temporary", "paused", "waits for approval"])
@on_a_loop
async def test_temporary_paused_and_unapproved_statements_are_not_shared(
    alice: User, bob: User, how: str
) -> None:
    async with house() as porter:
        if how == "waits for approval":
            await User.objects.filter(pk=bob.pk).aupdate(reviews_memory=True)
        fields = (
            {"temporary": True} if how == "temporary" else {"memory": "paused"} if how == "paused" else {}
        )
        chat = await porter.tell(bob, **fields)
        other = await porter.chat(alice)
        assert await recalled(other) == []
        if how == "waits for approval":
            proposed = await MemoryEntry.objects.aget(user=bob)
            await chat.program.post(f"memory/review/{proposed.pk}/approve")
            assert "7731" in str(await recalled(other))


@pytest.mark.mechanism("memory.shared-forgotten")
@on_a_loop
async def test_a_shared_entry_that_its_user_forgets_leaves_no_copy_with_other_users(
    alice: User, bob: User
) -> None:
    async with house() as porter:
        chat = await porter.tell(bob)
        other = await porter.chat(alice)
        await other.ask(ASKED)
        found = ToolResultPart("1", "memory_search", f"shared entry: {SAID}")
        await in_database(ConversationOffloads().offload_tool_result)(other.conversation, found)
        assert {"chatapp_message", "chatapp_memoryentry"} <= set(await in_database(tables_with)("heliotrope"))
        entry = await MemoryEntry.objects.aget(user=bob)
        assert (await chat.program.delete(f"memory/entries/{entry.pk}")).status_code == 204
        assert await in_database(tables_with)("heliotrope") == []
        assert not await Offload.objects.aexists()
        assert await recalled(other) == []


@pytest.mark.mechanism("memory.shared-forgotten")
@pytest.mark.parametrize("what", ["entry", "message", "conversation", "everything"])
@on_a_loop
async def test_forgetting_reaches_the_chats_of_a_deleted_agent(
    alice: User, bob: User, admin_client: Client, what: str
) -> None:
    async with house() as porter:
        chat = await porter.tell(bob)
        other = await porter.chat(alice)
        await other.ask(ASKED)
        page = f"/admin/chatapp/agent/{porter.agent.pk}/delete/"
        assert (await in_database(admin_client.post)(page, {"post": "yes"})).status_code == 302
        assert not await Agent.objects.filter(pk=porter.agent.pk).aexists()
        assert (await shape_of(other))["shared_memory_of"] is None
        entry = await MemoryEntry.objects.aget(user=bob)
        message = (await chat.program.get(f"conversations/{chat.conversation}/messages")).json()["items"][0]
        wishes: dict[str, Any] = {
            "entry": {"entry_id": str(entry.pk)},
            "message": {"message_id": message["id"]},
            "conversation": {"conversation_id": chat.conversation},
            "everything": {"everything": True},
        }
        answer = await chat.program.post("memory/forget", **wishes[what])
        assert answer.status_code == 200, answer.content
        assert await in_database(tables_with)("heliotrope") == []


@on_a_loop
async def test_other_users_profiles_lose_forgotten_statements_that_are_not_their_own(
    alice: User, bob: User
) -> None:
    async with house() as porter:
        chat = await porter.tell(bob)
        other = await porter.chat(alice)
        await other.ask(ASKED)
        private = await porter.say(alice, "I keep my bicycle at the depot.", agent="default")
        await in_database(index_conversation)(private.conversation)
        own = "- Keeps a bicycle at the depot"
        told = "- The gate code of the depot is 7731-heliotrope"
        profile = await Profile.objects.acreate(user=alice, text=f"{own}\n{told}", version=1)
        entry = await MemoryEntry.objects.aget(user=bob)
        assert (await chat.program.delete(f"memory/entries/{entry.pk}")).status_code == 204
        await profile.arefresh_from_db()
        assert profile.text == own
        assert await in_database(tables_with)("heliotrope") == []


@pytest.mark.parametrize("what", ["conversation", "everything"])
@on_a_loop
async def test_forgetting_a_conversation_or_everything_leaves_no_copy_with_other_users(
    alice: User, bob: User, what: str
) -> None:
    async with house() as porter:
        chat = await porter.tell(bob)
        other = await porter.chat(alice)
        await other.ask(ASKED)
        wish = {"everything": True} if what == "everything" else {"conversation_id": chat.conversation}
        answer = await chat.program.post("memory/forget", **wish)
        assert answer.status_code == 200, answer.content
        assert await in_database(tables_with)("heliotrope") == []


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.shared-forgotten")
@on_a_loop
async def test_another_users_own_statement_stays_when_a_user_forgets_the_same(
    alice: User, bob: User, charlie: User
) -> None:
    async with house() as porter:
        mine, theirs = await porter.say(alice), await porter.say(bob)
        for chat in (mine, theirs):
            assert (await chat.compact())["status"] == "done"
        await mine.ask(ASKED)
        assert "7731" in porter.server.requests_of("chat")[-1].text
        entry = await MemoryEntry.objects.aget(user=bob)
        assert (await theirs.program.delete(f"memory/entries/{entry.pk}")).status_code == 204
        assert "7731-heliotrope" in (await MemoryEntry.objects.aget(user=alice)).text
        assert "7731" in str(await recalled(await porter.chat(charlie))), "alice shares it"
        told = str(await recalled(await porter.chat(bob)))
        assert "7731" not in told, "who forgot it is told it no more, whoever says it"


def test_a_forgetting_invalidates_earlier_reads_of_the_shared_memory_only(alice: User, bob: User) -> None:
    agent = Agent.objects.create(name="Porter", shares_memory=True)
    told = create_conversation(user=bob, now=NOW, agent=agent)
    entry = MemoryEntry.objects.create(
        user=bob,
        day=NOW.date(),
        text=SAID,
        conversation=told,
        scope=agent,
        shared_in=agent.pk,
        created_at=NOW,
    )
    reading = create_conversation(user=alice, now=NOW, agent=agent)
    apart = create_conversation(user=alice, now=NOW)
    counts = {row.pk: read_forgetting_count(row.forgetting_keys) for row in (reading, apart)}
    forget_entry(bob, entry.pk, now=NOW)
    check(apart, counts[apart.pk])
    with pytest.raises(ReadForgotten):
        check(reading, counts[reading.pk])


def check(conversation: Conversation, count: int) -> None:
    with transaction.atomic():
        check_forgetting_count(conversation.forgetting_keys, count)


@pytest.mark.mechanism("memory.shared-opened")
def test_only_an_operator_can_open_a_shared_memory_in_the_admin_or_by_a_file(
    alice: User, api_client: Clients, admin_client: Client, tmp_path: Any
) -> None:
    mine = {"name": "Mine", "shares_memory": True}
    refused = api_client(alice).post("/api/v1/agents", json.dumps(mine), content_type="application/json")
    assert refused.status_code == 422
    with pytest.raises(IntegrityError), transaction.atomic():
        Agent.objects.create(name="Mine", owner=alice, shares_memory=True)

    agent = Agent.objects.create(name="Porter")
    page = f"/admin/chatapp/agent/{agent.pk}/change/"
    form = {"name": "Porter", "mode": "react", "timeout_s": "0", "context_policy": "{}", "hooks": "[]"}
    saved = admin_client.post(page, form | {"uses_memory": "on", "shares_memory": "on", "enabled": "on"})
    assert saved.status_code == 302
    agent.refresh_from_db()
    assert agent.shares_memory
    listed = api_client(alice).get("/api/v1/agents").json()["items"]
    assert [row["shares_memory"] for row in listed] == [False, True]

    file = tmp_path / "agents.yaml"
    brain = "{provider: openai, model: test-model}"
    file.write_text(
        "agents:\n"
        f"  - {{id: Porter, brain: {brain}}}\n"
        f"  - {{id: Janitor, shared_memory: true, brain: {brain}}}\n"
    )
    call_command("load_agents", str(file))
    assert dict(Agent.objects.values_list("name", "shares_memory")) == {"Porter": False, "Janitor": True}
