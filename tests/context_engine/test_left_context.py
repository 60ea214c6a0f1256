"""Messages that a compaction removes from the context: in context.jsonl once, read by tools, forgotten as elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from chatapp.conversations.models import Conversation, Message
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads
from chatapp.forgetting.services import forget_message
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from memory.types import Message as MessageValue
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.memory_store.rows import finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


async def kept(chat: Chat) -> list[str]:
    """Return the ids of the messages in the file, in file order."""
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
async def test_covered_messages_are_appended_once_however_often_the_worker_runs(
    alice: User,
) -> None:
    async with chatting(alice) as chat:
        row = await chat.compact()
        await keep(row)
        await keep(row)
        assert await kept(chat) == await covered(row)


@on_a_loop
async def test_a_worker_that_dies_after_the_append_causes_no_second_append(alice: User) -> None:
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
async def test_a_line_separator_in_a_message_does_not_end_a_line_of_the_file(alice: User) -> None:
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
async def test_messages_compacted_again_after_an_undo_are_not_appended_again(alice: User) -> None:
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
async def test_clearing_the_context_wakes_the_worker_to_keep_the_messages(alice: User) -> None:
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
async def test_the_offload_tool_reads_only_the_context_file_of_its_own_conversation(alice: User) -> None:
    other = await in_database(create_conversation)(user=alice, now=clock.now())
    async with chatting(alice) as chat:
        await keep(await chat.compact())
        first = await Message.objects.aget(conversation_id=chat.conversation, position=0)
        words = first.parts[0]["text"][:20]
        caller = ToolCaller(str(alice.pk), chat.conversation, "")
        found = await BUILT_IN["offloaded_page"].call({"reference": "context"}, caller)
        assert words in found.text
        elsewhere = ToolCaller(str(alice.pk), str(other.pk), "")
        with pytest.raises(Exception, match="Nothing is stored under this reference in this conversation"):
            await BUILT_IN["offloaded_page"].call({"reference": "context"}, elsewhere)


@on_a_loop
async def test_a_forgotten_message_is_removed_from_the_file_and_the_rest_is_kept_again(alice: User) -> None:
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


class Interrupted(ConversationOffloads):
    """An offload store that calls `meanwhile` before or after its next append."""

    meanwhile: Callable[[], object] | None = None
    is_behind = False

    def offload_context(self, conversation_id: str, messages: Sequence[MessageValue]) -> str:
        meanwhile, Interrupted.meanwhile = Interrupted.meanwhile, None
        if meanwhile and not self.is_behind:
            meanwhile()
        reference = super().offload_context(conversation_id, messages)
        if meanwhile and self.is_behind:
            meanwhile()
        return reference


def interrupt(settings: Any, meanwhile: Callable[[], object], *, is_behind: bool = False) -> None:
    settings.OFFLOADER = f"{__name__}.Interrupted"
    Interrupted.meanwhile, Interrupted.is_behind = meanwhile, is_behind


def lines(conversation: Conversation) -> list[str]:
    """Return the texts in the file, in file order."""
    text = ConversationOffloads().read(str(conversation.pk), "context", limit=10**7)
    return [json.loads(line)["parts"][0]["text"] for line in text.splitlines()]


@pytest.mark.parametrize("is_behind", [False, True], ids=["before the append", "behind the append"])
def test_messages_forgotten_after_the_worker_read_them_are_not_kept(
    alice: User, settings: Any, is_behind: bool
) -> None:
    """The request may be older than the worker's start, because a forgetting in pieces takes time."""
    chat = new_conversation(alice)
    told, _ = say(chat, "I like celadon.", "Noted.")
    row = finished_compaction(chat)
    Compaction.objects.filter(pk=row.pk).update(last_position=1, message_count=2)
    asked_at = clock.now()
    interrupt(settings, lambda: forget_message(alice, told.pk, now=asked_at), is_behind=is_behind)
    keep_left_context(row.pk)
    row.refresh_from_db()
    assert row.context_kept_at is None
    assert not Offload.objects.filter(conversation=chat).exists()
    keep_left_context(row.pk)
    row.refresh_from_db()
    assert row.context_kept_at is not None
    assert lines(chat) == ["Noted."]


def test_messages_kept_by_other_compactions_are_kept_again_after_the_file_is_discarded(
    alice: User, settings: Any
) -> None:
    elsewhere, chat = new_conversation(alice), new_conversation(alice)
    told, _ = say(elsewhere, "I like celadon.", "Noted.")
    say(chat, "Bread is cheap.", "Is it?")
    first, second = finished_compaction(chat, 0), finished_compaction(chat, 1)
    keep_left_context(first.pk)
    interrupt(settings, lambda: forget_message(alice, told.pk, now=clock.now()))
    keep_left_context(second.pk)
    for row in (first, second):
        keep_left_context(row.pk)
    assert lines(chat) == ["Bread is cheap.", "Is it?"]
