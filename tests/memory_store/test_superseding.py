"""The summary model names the earlier entry that a new statement supersedes, and invalid names are ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.models import Compaction
from chatapp.context.recalled import mark_superseded
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.long_term.actions.entries import add_entry, record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.models import StoredClaim
from chatapp.recall.turn_recall import InContext, RecalledTurn
from memory.recall.ranking import RecallSize
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

MAY = NOW - timedelta(days=200)
LANGUAGES = {
    "Chinese": ("我们的团建定在西湖举行。", "我们的团建改到太湖那边了。"),
    "Russian": ("Собаку зовут Рекс-1.", "Собаку теперь зовут Барон-2."),
    "German": ("Meine Katze schläft im Keller.", "Meine Katze schläft im Dachboden."),
    "English": ("Tea before breakfast suits me best.", "Coffee before breakfast suits me best."),
}
ROOM = RecallSize(tokens=200, chars=2_000)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as answering:
        make_model(answering, name="Main", is_default=True)
        yield answering


def remember(user: User, text: str) -> tuple[MemoryEntry, Message]:
    """Return an entry of an earlier conversation, and the message that it was made from."""
    conversation = new_conversation(user)
    [said, *_] = say(conversation, text, "Noted.", at=MAY)
    index_conversation(conversation.pk)
    entry = record_entry(
        compaction=finished_compaction(conversation),
        text=f"- {text}",
        first_message_id=said.pk,
        last_message_id=said.pk,
        at=NOW + timedelta(days=1),  # summarised after the newer statement was made
    )
    assert entry is not None
    return entry, said


def summarise(conversation: Conversation, server: ModelServer, answer: str) -> str:
    """Summarise the whole conversation with this model answer, and return the messages of the model request."""
    row = finished_compaction(conversation)
    Compaction.objects.filter(pk=row.pk).update(
        status="pending", last_position=conversation.next_position - 1, budget_tokens=20_000
    )
    index_conversation(conversation.pk)
    conversation.messages.update(token_estimate=100)
    server.script(says(answer), kind="summary")
    compaction_tasks.compact(str(row.pk))
    row.refresh_from_db()
    assert (row.status, row.fallback_reason) == ("done", "")
    assert "Over" not in row.summary
    return str(server.requests[-1].body["messages"])


def talk(user: User, *texts: str) -> Conversation:
    conversation = new_conversation(user)
    say(conversation, *texts, "I see. " * 40, at=NOW)
    return conversation


def recalled(entry: MemoryEntry, context: InContext | None = None) -> str:
    source = {"kind": "entry", "entry_id": str(entry.pk)}
    turn = RecalledTurn(f"memory: {entry.text}", source, tokens=12, said_at=MAY, role="", score=1.0)
    [marked] = mark_superseded(entry.user_id, [turn], ROOM, *([context] if context else []))
    return marked.text


@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_model_names_the_entry_that_a_new_statement_supersedes(
    alice: User, api_client: Callable[[User], Client], server: ModelServer, language: str
) -> None:
    older, newer = LANGUAGES[language]
    entry, said = remember(alice, older)
    asked = summarise(talk(alice, newer), server, f"- {newer}\n\n## Over\nk1 => {newer}")
    assert f"k1: {older}" in asked
    assert len(server.requests) == 1  # the summary is the only call
    assert newer in recalled(entry)
    [day] = [one for one in entry_days(api_client(alice), entry) if one["id"] == str(entry.pk)]
    assert [one["superseded_by"] for one in day["superseded"]] == [newer]
    sources = {row.message_id or row.entry_id for row in StoredClaim.objects.exclude(superseded_by=None)}
    assert sources == {entry.pk, said.pk}


def entry_days(client: Client, entry: MemoryEntry) -> list[dict]:
    return list(client.get(f"/api/v1/memory/days/{entry.day}").json()["entries"])


OLDER, NEWER = LANGUAGES["English"]


@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.parametrize(
    "line",
    [
        f"k99 => {NEWER}",
        f"{OLDER} => {NEWER}",
        "k1 => Coffee in the evening keeps bob awake.",
        "k1 => I told you that coffee before breakfast is wrong.",
    ],
)
def test_unknown_ids_and_statements_that_the_user_did_not_make_are_ignored(
    alice: User, server: ModelServer, line: str
) -> None:
    entry, _ = remember(alice, OLDER)
    summarise(talk(alice, NEWER), server, f"- {NEWER}\n\n## Over\n{line}")
    assert not StoredClaim.objects.filter(is_named=True).exists()
    assert "then:" not in recalled(entry)


@pytest.mark.mechanism("memory.changing-facts")
def test_entries_of_other_users_or_branches_and_unapproved_ones_are_not_offered(
    alice: User, bob: User, server: ModelServer
) -> None:
    remember(bob, "Cocoa before breakfast suits me best, says bob.")
    conversation = talk(alice, NEWER)
    assert conversation.branch is not None
    sibling = Branch.objects.create(conversation=conversation)
    elsewhere = finished_compaction(conversation)
    Compaction.objects.filter(pk=elsewhere.pk).update(branch=sibling)
    first = conversation.messages.order_by("position").first()
    assert first is not None
    elsewhere.refresh_from_db()
    record_entry(
        compaction=elsewhere,
        text="Milk before breakfast suits me best.",
        first_message_id=first.pk,
        last_message_id=first.pk,
        at=NOW,
    )
    proposed = add_entry(user=alice, text="Juice before breakfast suits me best.", now=MAY)
    MemoryEntry.objects.filter(pk=proposed.pk).update(state=MemoryEntry.State.PROPOSED)
    add_entry(user=alice, text=OLDER, now=MAY)
    asked = summarise(conversation, server, f"- {NEWER}")
    assert OLDER in asked
    assert not [word for word in ("Cocoa", "Milk", "Juice") if word in asked]


def test_a_date_in_the_older_statement_is_read_in_the_users_time_zone(
    alice: User, server: ModelServer
) -> None:
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    older, newer = "On March 10, 2026 the cranes came back.", "The cranes have left again."
    early = datetime(2026, 3, 9, 22, tzinfo=UTC)  # 7 a.m. on March 10 in Tokyo
    [said] = say(new_conversation(alice), older, at=early)
    say(new_conversation(alice), *(f"The cranes call, number {n}." for n in range(60)), role="user",
        at=early + timedelta(days=1))  # fmt: skip
    for conversation in Conversation.objects.all():
        index_conversation(conversation.pk)
    add_entry(user=alice, text=f"- {older}", now=early)
    summarise(talk(alice, newer), server, f"- {newer}\n\n## Over\nk1 => {newer}")
    assert StoredClaim.objects.filter(message_id=said.pk).exclude(superseded_by=None).exists()


def test_rules_decide_if_the_model_names_no_entry(alice: User, server: ModelServer) -> None:
    entry, _ = remember(alice, "I live in Paris.")
    summarise(talk(alice, "I moved to Lyon."), server, "- The user moved to Lyon.")
    assert "then: I moved to Lyon." in recalled(entry)


@pytest.mark.mechanism("memory.changing-facts")
def test_a_newer_statement_on_another_branch_is_not_shown(alice: User, server: ModelServer) -> None:
    conversation = new_conversation(alice)
    [said, *_] = say(conversation, "I live in Paris.", "Noted.", at=MAY)
    here = conversation.branch
    assert here is not None
    lineage = [[str(here.pk), 1]]
    conversation.branch = Branch.objects.create(conversation=conversation, lineage=lineage)
    say(conversation, "I moved to Lyon.", "I see.", at=NOW)
    index_conversation(conversation.pk)
    source = {"kind": "message", "message_id": str(said.pk)}
    turn = RecalledTurn("user: I live in Paris.", source, tokens=8, said_at=MAY, role="user", score=1.0)
    shown = {
        branch: mark_superseded(
            alice.pk, [turn], ROOM, InContext(conversation_id=conversation.pk, branch=branch)
        )
        for branch in (here, conversation.branch)
    }
    assert shown[here] == [turn]
    assert "then: I moved to Lyon." in shown[conversation.branch][0].text
