"""Dates in questions, recalled text and summaries are in the user's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import claim_compaction
from chatapp.compaction.work import read_work
from chatapp.context.recalled import mark_superseded
from chatapp.conversations.models import Conversation
from chatapp.providers.models import ModelConfig
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.turn_recall import InContext, RecalledTurn, recall_for
from memory.recall.ranking import RecallSize
from memory.summaries.transcript import split_transcript
from tests.memory_store.rows import finished_compaction, new_conversation, say
from tests.memory_store.test_memory_api import Clients

pytestmark = pytest.mark.django_db
ROOM = RecallSize(2_000, 8_000)
SAID = ["I planted tulips.", "I planted leeks.", "I planted garlic."]
FIRST = datetime(2026, 3, 9, 22, tzinfo=UTC)
NOW = FIRST + timedelta(days=2, hours=2)
"""Midnight of March 12 in UTC, 9:00 of that day in Tokyo, and 14:00 of March 11 in Honolulu."""


@pytest.fixture
def conversation(alice: User) -> Conversation:
    """Store turns at 22:00 UTC of three days, which is the next morning in Tokyo and noon in Honolulu."""
    conversation = new_conversation(alice)
    for day, text in enumerate(SAID):
        say(conversation, text, "Good.", at=FIRST + timedelta(days=day))
    index_conversation(conversation.pk)
    return conversation


def recall(user: User, question: str, now: datetime = NOW) -> list[RecalledTurn]:
    return recall_for(
        user_id=user.pk, question=question, now=now, room=ROOM, context=InContext(zone=user.zone)
    )


@pytest.mark.parametrize(
    ("zone", "planted"), [("UTC", SAID[2]), ("Asia/Tokyo", SAID[1]), ("Pacific/Honolulu", SAID[1])]
)
def test_yesterday_is_read_in_the_users_time_zone(
    alice: User, api_client: Clients, conversation: Conversation, zone: str, planted: str
) -> None:
    alice.time_zone = zone
    alice.save(update_fields=["time_zone"])
    asked = {"q": "What did I plant yesterday?", "as_of": NOW.isoformat()}
    found = api_client(alice).get("/api/v1/memory/search", asked).json()["items"]
    assert found[0]["text"] == planted
    assert found[0]["created_at"].endswith("Z"), "times stay as the API writes them"
    best = max(recall(alice, asked["q"]), key=lambda turn: turn.score)
    assert best.text.endswith(planted)


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-03-10"), ("Asia/Tokyo", "2026-03-11")])
def test_recalled_text_is_dated_in_the_users_time_zone(
    alice: User, conversation: Conversation, zone: str, day: str
) -> None:
    alice.time_zone = zone
    turns = {
        turn.text.partition(": ")[2]: turn.day.isoformat() for turn in recall(alice, "Who planted leeks?")
    }
    assert turns[SAID[1]] == day


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Pacific/Honolulu"])
def test_turns_at_the_ends_of_the_calendar_are_found(alice: User, zone: str, at: datetime) -> None:
    alice.time_zone = zone
    conversation = new_conversation(alice)
    say(conversation, "I planted quinces.", at=at)
    index_conversation(conversation.pk)
    for question in (
        "Who planted quinces?",
        "What did I plant yesterday, quinces?",
        "What was our first chat?",
    ):
        [turn] = recall(alice, question)
        assert mark_superseded(alice.pk, [turn], ROOM, InContext(zone=alice.zone)) == [turn]


def test_a_transcript_is_dated_in_the_users_time_zone(alice: User, conversation: Conversation) -> None:
    alice.time_zone = "Asia/Tokyo"
    alice.save(update_fields=["time_zone"])
    ModelConfig.objects.create(
        name="Main", model_id="main", base_url="http://127.0.0.1:9/v1", is_default=True
    )
    compaction = finished_compaction(conversation)
    type(compaction).objects.filter(pk=compaction.pk).update(
        status="pending", lease_expires_at=NOW, last_position=5
    )
    lease = claim_compaction(compaction_id=compaction.pk, holder="worker", now=NOW)
    assert lease is not None
    [transcript] = split_transcript(read_work(lease).messages, 1_000)
    assert [line for line in transcript.split("\n\n") if line[0] == "["] == [
        "[2026-03-10]",
        "[2026-03-11]",
        "[2026-03-12]",
    ]
