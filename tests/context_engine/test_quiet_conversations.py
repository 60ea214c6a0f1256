"""Spans that left a small window but are too short for a summary are summarised once the conversation is quiet."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async

from chatapp.accounts.models import User
from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.selectors import QUIET_AFTER, quiet_conversations
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import NotFound
from chatapp.providers.models import ModelConfig
from memory.errors import PolicyError
from tests.api.program import Program
from tests.context_engine.talking import Talk, talking, words, work
from tests.memory_store.rows import NOW, new_conversation

pytestmark = pytest.mark.usefixtures("transactional_db")
SMALL = {"context_size": 8_000, "max_output_tokens": 4_000}


async def until_something_waits(talk: Talk) -> None:
    for number in range(60):
        await talk.ask(words(150, f"Note {number}."))
        await work()
        if (await Conversation.objects.aget(pk=talk.id)).summary_waits:
            return
    raise AssertionError("nothing ever waited")


@pytest.mark.mechanism("ours.short-spans")
async def test_a_short_span_is_summarised_once_the_conversation_is_quiet(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, context_policy=SMALL) as talk:
        await until_something_waits(talk)
        written = await MemoryEntry.objects.acount()
        later = clock.now() + QUIET_AFTER + timedelta(seconds=1)
        assert await in_database(quiet_conversations)(clock.now()) == []
        assert await in_database(quiet_conversations)(later) == [UUID(talk.id)]

        await sync_to_async(compaction_tasks.summarise_rest)(talk.id)
        assert await work() == 1
        assert await MemoryEntry.objects.acount() == written + 1
        assert await in_database(quiet_conversations)(later) == []


async def test_messages_still_in_view_are_not_summarised_in_a_quiet_conversation(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, context_policy=SMALL) as talk:
        await talk.ask("Hello.")
        await sync_to_async(compaction_tasks.summarise_rest)(talk.id)
        assert await work() == 0
        assert not (await Conversation.objects.aget(pk=talk.id)).summary_waits


@pytest.mark.parametrize("reason", ["no model", "a policy that is not valid"])
def test_conversations_that_cannot_be_loaded_do_not_block_others(
    alice: User, charlie: User, model: ModelConfig, reason: str
) -> None:
    for _ in range(20):
        new_conversation(alice)
    if reason == "no model":
        ModelConfig.objects.update(enabled=False)
    else:
        Conversation.objects.update(context_policy={"keep_recent": "many"})
    other = new_conversation(charlie, at=NOW + timedelta(hours=1))
    Conversation.objects.update(summary_waits=True)
    later = NOW + timedelta(days=1)
    for conversation_id in quiet_conversations(later):
        with suppress(NotFound, PolicyError):  # the worker logs these errors
            compaction_tasks.summarise_rest(str(conversation_id))
    assert quiet_conversations(later) == [other.pk]
