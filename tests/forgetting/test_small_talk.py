"""From a thousand turns of small talk with fifty facts, memory learns the facts and hardly anything else."""

from __future__ import annotations

import random
import re
from uuid import UUID

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.compactor import queue_next_compaction
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.threads import in_database
from memory.language.sentences import split_sentences, strip_list_mark
from tests.api.program import Program
from tests.context_engine.chatting import make_model, on_a_loop
from tests.context_engine.talking import talking, work
from tests.forgetting.fifty_facts import ASKED, FACTS, SAID
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

TURNS = 1_000
STILL_IN_CONTEXT = 120
"""The last turns, which contain no facts, because they are not summarised and so not learned yet."""


def conversation() -> list[dict[str, str]]:
    chance = random.Random(7)
    told = dict(zip(sorted(chance.sample(range(TURNS - STILL_IN_CONTEXT), 50)), FACTS, strict=True))
    messages = []
    for turn in range(TURNS):
        asked, said = chance.choice(ASKED), chance.choice(SAID)
        if turn in told:
            asked, said = f"{asked} {told[turn]}", f"Noted: {told[turn]}" if turn % 3 == 0 else said
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    return messages


def summarise(request: RecordedRequest) -> Behaviour:
    """Return a summary with all facts in the request, from the earlier summary and the new messages."""
    found = [fact for fact in FACTS if fact in request.text]
    return says("The user and the assistant chat.\n" + "\n".join(f"- {fact}" for fact in found))


@pytest.mark.mechanism("memory.small-talk")
@pytest.mark.parametrize("summariser", ["a model", "no model"])
@on_a_loop
async def test_memory_learns_the_facts_among_a_thousand_turns_of_small_talk(
    alice: User, alice_program: Program, summariser: str
) -> None:
    default = summarise if summariser == "a model" else ERRORS["server"]()
    with ModelServer(summary_default=default) as server:
        await in_database(make_model)(
            server, name="Main", is_default=True, context_size=16_000, max_output_tokens=2_000
        )
        async with talking(alice_program, conversation()) as talk:
            await in_database(queue_next_compaction)(UUID(talk.id))
            assert await work()
            texts = [entry.text async for entry in MemoryEntry.objects.filter(user=alice)]
            learned = [strip_list_mark(one) for text in texts for one in split_sentences(text)]
            found = [fact for fact in FACTS if any(fact in sentence for sentence in learned)]
            assert len(found) >= 47
            assert len(learned) <= 60
            assert len({re.sub(r"\W+", " ", one).casefold() for one in learned}) == len(learned)
