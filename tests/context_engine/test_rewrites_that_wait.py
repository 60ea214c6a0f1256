"""Summaries that wait to be rewritten after a forgetting."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.compaction import tasks
from chatapp.compaction.actions.compactions import edit_summary, redo_compaction, undo_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.rewriting import waiting_rewrites
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.services import forget_message
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import finished_compaction, new_conversation, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

DENTIST = "My dentist is Dr Quillfeather in Elm Street 14."
CONTRACT = "My contract ends in 2027."
OWN = "Nothing but my plum tree matters here."


def test_a_users_edit_of_a_summary_is_not_replaced_by_a_models_rewrite(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, DENTIST, "Noted.", CONTRACT, "I see.")
    Message.objects.update(token_estimate=40)
    row = finished_compaction(conversation, summary=f"{DENTIST} {CONTRACT}")
    Compaction.objects.filter(pk=row.pk).update(last_position=3, message_count=4, summary_tokens=200)
    forget_message(alice, rows[0].pk, now=clock.now())
    with ModelServer(summary_default=says(CONTRACT)) as server:
        make_model(server, name="Main", is_default=True)
        # The user edits before the worker starts, or while the model is down, maybe for hours.
        edit_summary(
            user=alice,
            conversation_id=str(conversation.pk),
            compaction_id=str(row.pk),
            summary=OWN,
            tokens=10,
            now=clock.now(),
        )
        tasks.rewrite_summary(str(row.pk))
    row.refresh_from_db()
    assert row.summary == OWN


def test_one_users_long_conversation_does_not_block_the_rewrites_of_others(
    alice: User, charlie: User
) -> None:
    now = clock.now()
    long, previous = new_conversation(alice), None
    say(long, *["word"] * 60)
    for at in range(25):
        previous_row = previous
        previous = finished_compaction(long, 2 * at, summary="Words.")
        Compaction.objects.filter(pk=previous.pk).update(
            previous=previous_row, last_position=2 * at + 1, rewrite_since=now - timedelta(minutes=9)
        )
    # The model refused, so the first summary waits, and so do all that build on it.
    first = Compaction.objects.order_by("last_position").first()
    assert first is not None
    Compaction.objects.filter(pk=first.pk).update(rewrite_after=now + timedelta(hours=6))
    other = new_conversation(charlie)
    say(other, *["word"] * 4)
    theirs = finished_compaction(other, summary="Words.")
    Compaction.objects.filter(pk=theirs.pk).update(rewrite_since=now - timedelta(minutes=9))

    with ModelServer(summary_default=says("Words.")) as server:
        make_model(server, name="Main", is_default=True)
        for _ in range(3):
            for compaction_id in waiting_rewrites(now):
                tasks.rewrite_summary(str(compaction_id))
    theirs.refresh_from_db()
    assert theirs.rewrite_since is None


def test_a_summary_that_was_undone_is_rewritten_after_a_redo(alice: User) -> None:
    conversation = new_conversation(alice)
    key = str(conversation.pk)
    rows = say(conversation, DENTIST, "Noted.", CONTRACT, "I see.")
    Message.objects.update(token_estimate=40)
    row = finished_compaction(conversation, summary=f"{DENTIST} {CONTRACT}")
    Compaction.objects.filter(pk=row.pk).update(last_position=3, message_count=4, summary_tokens=200)
    forget_message(alice, rows[0].pk, now=clock.now())
    names = {"user": alice, "conversation_id": key, "compaction_id": str(row.pk)}
    undo_compaction(**names, now=clock.now())
    with ModelServer(summary_default=says(CONTRACT)) as server:
        make_model(server, name="Main", is_default=True)
        tasks.rewrite_summary(str(row.pk))  # as woken by the forgetting
        redo_compaction(**names, now=clock.now())
        for compaction_id in waiting_rewrites(clock.now() + timedelta(minutes=1)):
            tasks.rewrite_summary(str(compaction_id))
    row.refresh_from_db()
    assert (row.status, row.fallback_reason) == ("done", "")


@pytest.mark.parametrize("reason", ["no model", "a policy that is not valid"])
def test_summaries_that_cannot_be_rewritten_wait_and_do_not_block_others(
    alice: User, charlie: User, model: ModelConfig, reason: str
) -> None:
    now = clock.now()
    for _ in range(20):
        conversation = new_conversation(alice)
        say(conversation, CONTRACT)
        finished_compaction(conversation, summary=CONTRACT)
    Compaction.objects.update(rewrite_since=now - timedelta(minutes=9))
    if reason == "no model":
        ModelConfig.objects.update(enabled=False)
    else:
        Conversation.objects.update(context_policy={"keep_recent": "many"})
    other = new_conversation(charlie)
    say(other, CONTRACT)
    theirs = finished_compaction(other, summary=CONTRACT)
    Compaction.objects.filter(pk=theirs.pk).update(rewrite_since=now - timedelta(minutes=5))
    for compaction_id in waiting_rewrites(now):
        tasks.rewrite_summary(str(compaction_id))
    assert waiting_rewrites(now) == [theirs.pk]
    assert Compaction.objects.filter(rewrite_since=None).count() == 0
