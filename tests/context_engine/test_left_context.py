"""What left the context by a compaction: in context.jsonl once, read by the tools, forgotten with its words."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from celery.signals import before_task_publish
from django.test import override_settings

from agents.tools.protocol import ToolCaller
from chatapp.accounts.models import User
from chatapp.compaction.left_context import keep_left_context
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import compactions_to_keep
from chatapp.context.tools.registry import BUILT_IN
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Message
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads
from chatapp.forgetting.services import forget_message
from chatapp.operations import clock
from chatapp.operations.database import in_database
from tests.context_engine.chatting import Chat, chatting, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)


async def kept(chat: Chat) -> list[str]:
    """Return the ids of the messages in the file, in its order."""
    text = await in_database(ConversationOffloads().read)(chat.conversation, "context", limit=10**7)
    return [json.loads(line)["id"] for line in text.split("\n") if line]


async def covered(row: dict[str, object]) -> list[str]:
    done = await Compaction.objects.aget(pk=str(row["id"]))
    rows = Message.objects.filter(conversation_id=done.conversation_id, position__lte=done.last_position)
    return [str(pk) async for pk in rows.order_by("position").values_list("pk", flat=True)]


async def keep(row: dict[str, object]) -> None:
    await in_database(keep_left_context)(UUID(str(row["id"])))


@pytest.mark.mechanism("agentscope.offload-context")
@on_a_loop
async def test_what_a_compaction_covers_is_appended_once_however_often_the_worker_is_woken(
    alice: User,
) -> None:
    async with chatting(alice) as chat:
        row = await chat.compact()
        await keep(row)
        await keep(row)
        assert await kept(chat) == await covered(row)


@on_a_loop
async def test_a_worker_that_dies_after_it_appended_leaves_nothing_to_append_twice(alice: User) -> None:
    async with chatting(alice) as chat:
        row = await chat.compact()
        await keep(row)
        died = Compaction.objects.filter(pk=row["id"])
        await died.aupdate(context_kept_at=None, finished_at=clock.now() - timedelta(hours=1))
        assert await in_database(compactions_to_keep)(clock.now()) == [UUID(row["id"])]
        await keep(row)
        assert await kept(chat) == await covered(row)
        assert await in_database(compactions_to_keep)(clock.now()) == []


@on_a_loop
async def test_a_line_separator_in_a_message_ends_no_line_of_the_file(alice: User) -> None:
    async with chatting(alice) as chat:
        first = Message.objects.filter(conversation_id=chat.conversation, position=0)
        await first.aupdate(parts=[{"type": "text", "text": "One}\u2028two\u2029three\x85four"}])
        row = await chat.compact()
        await keep(row)
        await Compaction.objects.filter(pk=row["id"]).aupdate(context_kept_at=None, finished_at=None)
        await keep(row)
        assert await kept(chat) == await covered(row)


@pytest.mark.mechanism("agentscope.offload-context")
@on_a_loop
async def test_after_an_undo_what_is_compacted_again_is_not_appended_again(alice: User) -> None:
    async with chatting(alice) as chat:
        first = await chat.compact()
        await keep(first)
        await chat.post(f"compactions/{first['id']}/undo")
        again = await chat.compact(keep="the codes")
        assert again["id"] != first["id"]
        await keep(again)
        assert await kept(chat) == await covered(again)


@pytest.mark.mechanism("agentscope.offload-context")
@on_a_loop
async def test_what_was_cleared_is_kept_at_once_and_not_by_the_sweep(alice: User) -> None:
    woken: list[tuple[str, list[str]]] = []

    def note(sender: str, body: Any, **_: Any) -> None:
        woken.append((sender, list(body[0])))

    async with chatting(alice) as chat:
        with override_settings(EMBEDDED=True):
            before_task_publish.connect(note)
            try:
                cleared = (await chat.post("context/clear")).json()
            finally:
                before_task_publish.disconnect(note)
        assert ("chatapp.compaction.tasks.keep_left_context", [cleared["id"]]) in woken
        await keep(cleared)
        assert await kept(chat) == await covered(cleared)


@on_a_loop
async def test_the_agent_reads_it_under_its_own_name_and_nobody_elses(alice: User) -> None:
    other = await in_database(create_conversation)(user=alice, now=clock.now())
    async with chatting(alice) as chat:
        await keep(await chat.compact())
        first = await Message.objects.aget(conversation_id=chat.conversation, position=0)
        words = first.parts[0]["text"][:20]
        caller = ToolCaller(str(alice.pk), chat.conversation, "run")
        found = await BUILT_IN["offloaded_page"].call({"reference": "context"}, caller)
        assert words in found.text
        elsewhere = ToolCaller(str(alice.pk), str(other.pk), "run")
        with pytest.raises(Exception, match="Nothing was offloaded here"):
            await BUILT_IN["offloaded_page"].call({"reference": "context"}, elsewhere)


@on_a_loop
async def test_a_forgotten_message_leaves_the_file_and_what_is_left_is_kept_again(alice: User) -> None:
    async with chatting(alice) as chat:
        row = await chat.compact()
        await keep(row)
        first, *rest = await covered(row)
        await in_database(forget_message)(alice, first, now=clock.now())
        assert not await Offload.objects.filter(conversation_id=chat.conversation).aexists()
        await Compaction.objects.filter(pk=row["id"]).aupdate(finished_at=clock.now() - timedelta(hours=1))
        await keep(row)
        assert first not in await kept(chat)
        assert set(await kept(chat)) <= set(rest)
