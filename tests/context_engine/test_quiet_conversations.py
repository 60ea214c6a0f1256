"""What left a small window and was too short to be summarised by itself is, once the conversation is quiet."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async

from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.selectors import QUIET_AFTER, quiet_conversations
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database import in_database
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.context_engine.talking import Talk, talking, words, work

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
async def test_what_waits_for_more_is_summarised_when_nothing_more_comes(
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


async def test_what_is_still_in_view_is_not_summarised_because_it_is_quiet(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, context_policy=SMALL) as talk:
        await talk.ask("Hello.")
        await sync_to_async(compaction_tasks.summarise_rest)(talk.id)
        assert await work() == 0
        assert not (await Conversation.objects.aget(pk=talk.id)).summary_waits
