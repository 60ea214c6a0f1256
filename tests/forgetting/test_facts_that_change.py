"""A newer statement supersedes an older one: search returns the current one first, the older one with its dates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.context.recalled import mark_superseded
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.services import forget_message, forget_whole_conversation
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.long_term.actions.consolidations import queue_consolidation
from chatapp.long_term.actions.entries import add_entry, record_entry
from chatapp.long_term.consolidation import consolidate
from chatapp.long_term.models import Profile
from chatapp.long_term.selectors.pauses import MemoryPauses
from chatapp.long_term.selectors.scopes import NO_ACCESS
from chatapp.recall.actions.claims import store_superseded_pairs
from chatapp.recall.actions.indexing import index_conversation, rebuild_index
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.claims import StatementPlace, fold_sentence, repeated_claims
from chatapp.recall.turn_recall import InContext, RecalledTurn
from memory.recall.ranking import RecallSize
from tests.blocking import beside
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

Clients = Callable[..., Client]
OLD, NEW = "I live in Paris.", "I moved to Lyon."
MAY = NOW - timedelta(days=200)


@pytest.fixture
def moved(alice: User) -> list[Message]:
    first, second = new_conversation(alice), new_conversation(alice)
    [old, *_] = say(first, OLD, "A fine city.", at=MAY)
    [new, *_] = say(second, NEW, "Congratulations!", at=NOW)
    for conversation in (second, first):  # the order of indexing must not matter
        index_conversation(conversation.pk)
    return [old, new]


def search(client: Client, **query: str) -> list[dict]:
    answer = client.get("/api/v1/memory/search", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def said(items: list[dict]) -> list[str]:
    return [item["text"] for item in items if item["text"] in (OLD, NEW)]


def test_search_returns_the_current_statement_first_and_the_older_one_with_its_end(
    alice: User, api_client: Clients, moved: list[Message]
):
    found = search(api_client(alice), q="Do I live in Paris?")
    assert said(found)[:2] == [NEW, OLD]
    older = next(item for item in found if item["text"] == OLD)
    assert older["valid_until"] == "2026-11-21T20:00:00Z"
    assert older["superseded_by"]["text"] == NEW
    assert older["superseded_by"]["message_id"] == str(moved[1].pk)
    current = next(item for item in found if item["text"] == NEW)
    assert current["valid_until"] is None


@pytest.mark.mechanism("memory.changing-facts")
def test_a_search_as_of_a_date_returns_the_statement_of_that_time(
    alice: User, api_client: Clients, moved: list[Message]
):
    found = search(api_client(alice), q="Where do I live?", as_of="2026-06-30")
    assert said(found) == [OLD]
    assert found[0]["valid_until"] is None


@pytest.mark.sqlite
def test_a_message_that_corrects_itself_is_listed_once(alice: User, api_client: Clients):
    conversation = new_conversation(alice)
    both = f"{OLD} No, wait: {NEW}"
    say(conversation, both, at=NOW)
    index_conversation(conversation.pk)
    assert StoredClaim.objects.exclude(superseded_by=None).exists()
    found = [item["text"] for item in search(api_client(alice), q="Do I live in Paris?")]
    assert found == [both]


def test_successive_statements_form_a_chain(alice: User, moved: list[Message]):
    third = new_conversation(alice)
    say(third, "I have moved to Nice now.", at=NOW + timedelta(days=9))
    index_conversation(third.pk)
    chain = list(StoredClaim.objects.order_by("said_at"))
    assert [row.superseded_by for row in chain] == [chain[1], chain[2], None]


def test_a_denial_supersedes_only_the_statement_that_it_denies(alice: User, api_client: Clients):
    conversation = new_conversation(alice)
    texts = ("I drink tea.", "I drink coffee.", "I don't drink coffee anymore.")
    for day, text in enumerate(texts):
        say(conversation, text, role="user", at=MAY + timedelta(days=day))
    index_conversation(conversation.pk)
    found = {item["text"]: item["superseded_by"] for item in search(api_client(alice), q="What do I drink?")}
    assert found["I drink coffee."]["text"] == "I don't drink coffee anymore."
    assert [found[text] for text in texts if text != "I drink coffee."] == [None, None]
    say(conversation, "I drink coffee.", role="user", at=NOW)
    index_conversation(conversation.pk)
    coffee = [row.superseded_by for row in StoredClaim.objects.order_by("said_at")][1:]
    assert [row is not None for row in coffee] == [True, True, False]


def test_a_forgotten_statement_supersedes_nothing(alice: User, api_client: Clients, moved: list[Message]):
    forget_message(alice, moved[1].pk, now=NOW)
    [older] = [item for item in search(api_client(alice), q="Where do I live?") if item["text"] == OLD]
    assert older["valid_until"] is None


@pytest.mark.parametrize("is_named", [False, True])
def test_a_statement_superseded_in_a_deleted_conversation_is_superseded_by_the_next_one(
    alice: User, moved: list[Message], is_named: bool
) -> None:
    [newest, *_] = say(new_conversation(alice), "I have moved to Nice now.", at=NOW + timedelta(days=9))
    if is_named:
        StoredClaim.objects.all().delete()
        old, new, last = (said_at(row) for row in (*moved, newest))
        store_superseded_pairs(alice.pk, [(old, new), (old, last)])
    else:
        index_conversation(newest.conversation_id)
    forget_whole_conversation(alice, moved[1].conversation_id, now=NOW)
    [older] = StoredClaim.objects.filter(message=moved[0].pk)
    assert older.superseded_by is not None
    assert older.superseded_by.message_id == newest.pk


def test_a_statement_superseded_in_a_trashed_conversation_is_superseded_by_the_next_one(
    alice: User, api_client: Clients, moved: list[Message]
) -> None:
    client = api_client(alice)
    move_to_trash(alice, str(moved[1].conversation_id), days=30, now=NOW)
    [older] = [item for item in search(client, q="Where do I live?") if item["text"] == OLD]
    assert older["valid_until"] is None, "nothing that is shown supersedes it"

    again, third = new_conversation(alice), new_conversation(alice)
    say(again, OLD, at=NOW + timedelta(days=8))
    index_conversation(again.pk)
    [newest, *_] = say(third, "I have moved to Nice now.", at=NOW + timedelta(days=9))
    index_conversation(third.pk)
    [older, same] = [item for item in search(client, q="Where do I live?") if item["text"] == OLD]
    assert older["superseded_by"]["message_id"] == same["superseded_by"]["message_id"] == str(newest.pk)
    assert [over.message_id for over in repeated_claims(alice.pk, [OLD])[OLD]] == [newest.pk]
    as_of = [item for item in search(client, q="Where do I live?", as_of="2026-11-29") if item["text"] == OLD]
    assert {item["valid_until"] for item in as_of} == {None}

    restore(alice, moved[1].conversation_id, now=NOW)
    until = {item["valid_until"] for item in search(client, q="Where do I live?") if item["text"] == OLD}
    assert until == {"2026-11-21T20:00:00Z", "2026-11-30T20:00:00Z"}


def test_a_statement_superseded_in_a_trashed_conversation_is_superseded_by_a_denial(
    alice: User, api_client: Clients, moved: list[Message]
) -> None:
    move_to_trash(alice, str(moved[1].conversation_id), days=30, now=NOW)
    [denied] = say(new_conversation(alice), "I don't live in Paris any more.", at=NOW + timedelta(days=9))
    index_conversation(denied.conversation_id)
    [older] = [item for item in search(api_client(alice), q="Where do I live?") if item["text"] == OLD]
    assert older["superseded_by"]["message_id"] == str(denied.pk)


def said_at(message: Message) -> StatementPlace:
    text = text_of(message.parts)
    return StatementPlace(fold_sentence(text), 0, len(text), message.created_at, message_id=message.pk)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_that_supersede_the_same_statement_see_each_other(
    alice: User, moved: list[Message]
) -> None:
    [newest, *_] = say(new_conversation(alice), "I have moved to Nice now.", at=NOW + timedelta(days=9))
    StoredClaim.objects.all().delete()
    old, new, last = (said_at(row) for row in (*moved, newest))
    with beside(
        lambda: store_superseded_pairs(alice.pk, [(old, last)]),
        lambda: store_superseded_pairs(alice.pk, [(old, new)]),
    ):
        pass
    chain = list(StoredClaim.objects.order_by("said_at"))
    assert [row.superseded_by for row in chain] == [chain[1], chain[2], None]


@pytest.mark.sqlite
def test_a_superseded_recalled_turn_quotes_the_newer_statement(alice: User, moved: list[Message]):
    turn = RecalledTurn(
        text=f"user: {OLD}",
        source={"kind": "message", "message_id": str(moved[0].pk)},
        tokens=8,
        said_at=MAY,
        role="user",
        score=1.0,
    )
    [marked] = mark_superseded(alice.pk, [turn], RecallSize(tokens=100, chars=1_000))
    assert marked.text == f"user: {OLD} [until 2026-11-21; then: {NEW}]"
    assert marked.tokens > turn.tokens
    assert mark_superseded(alice.pk, [turn], RecallSize(tokens=10, chars=1_000)) == []


def test_a_newer_statement_is_quoted_only_in_conversations_that_may_read_it(
    alice: User, moved: list[Message]
):
    old, new = moved
    source = {"kind": "message", "message_id": str(old.pk)}
    turn = RecalledTurn(f"user: {OLD}", source, tokens=8, said_at=MAY, role="user", score=1.0)
    room, paused = RecallSize(tokens=100, chars=1_000), MemoryPauses([(new.conversation_id, MAY, None)])
    apart = [
        InContext(conversation_id=old.conversation_id, access=NO_ACCESS),
        InContext(conversation_id=old.conversation_id, pauses=paused),
    ]
    assert [mark_superseded(alice.pk, [turn], room, context) for context in apart] == [[turn], [turn]]
    here = InContext(conversation_id=new.conversation_id, pauses=paused, access=NO_ACCESS)
    assert mark_superseded(alice.pk, [turn], room, here) != [turn]


@pytest.mark.sqlite
def test_an_entry_marks_its_superseded_sentences(alice: User, api_client: Clients, moved: list[Message]):
    conversation = moved[0].conversation
    record_entry(
        compaction=finished_compaction(conversation),
        text=f"They talk about the harbour.\n\n- {OLD}",
        first_message_id=moved[0].pk,
        last_message_id=moved[0].pk,
        at=NOW,
    )
    [entry] = api_client(alice).get("/api/v1/memory/days/2026-11-21").json()["entries"]
    [over] = entry["superseded"]
    assert over["superseded_by"] == NEW
    assert over["valid_until"] == "2026-11-21T20:00:00Z"
    assert OLD in over["text"]


def test_statements_of_other_users_supersede_nothing(alice: User, bob: User, moved: list[Message]):
    other = new_conversation(bob)
    say(other, "I moved to Rome.", at=NOW + timedelta(days=1))
    index_conversation(other.pk)
    claim = StoredClaim.objects.get(message=moved[1])
    assert claim.superseded_by is None


def test_an_entry_that_the_user_wrote_supersedes_a_statement(
    alice: User, api_client: Clients, moved: list[Message]
):
    answer = api_client(alice).post(
        "/api/v1/memory/entries",
        {"text": "I live in Nantes.", "day": "2026-12-01"},
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.content
    found = search(api_client(alice), q="Did I move to Lyon?")
    newest = next(item for item in found if item["text"] == NEW)
    assert newest["superseded_by"]["text"] == "I live in Nantes."
    assert newest["superseded_by"]["entry_id"]


LANGUAGES = {
    "Chinese": ("我住在北京。", "我搬到上海了。"),
    "Russian": ("Моя любимая еда — борщ.", "Моя любимая еда — пельмени."),
    "German": ("Meine Katze schläft im Keller.", "Meine Katze schläft im Dachboden."),
    "English": ("Tea before breakfast suits me best.", "Coffee before breakfast suits me best."),
}


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.django_db(transaction=True)
def test_the_nightly_model_names_superseded_statements_in_any_language(
    alice: User, api_client: Clients, language: str
) -> None:
    older, newer = LANGUAGES[language]
    first, second = new_conversation(alice), new_conversation(alice)
    [old, *_] = say(first, f"Hello. {older}", "Noted.", at=MAY)
    [new, *_] = say(second, newer, "I see.", at=NOW)
    for conversation in (first, second):
        index_conversation(conversation.pk)
    add_entry(user=alice, text=newer, now=NOW)
    with ModelServer(default=says(f"- {newer}\n\n## Over\n- {older} => {newer}")) as server:
        make_model(server, name="Main", is_default=True)
        row = queue_consolidation(user_id=alice.pk, now=NOW)
        assert row is not None
        consolidate(row.pk)
    for again in (lambda: None, lambda: rebuild_index(alice.pk)):
        again()
        found = search(api_client(alice), q=f"Hello {older}")
        over = next(item for item in found if item["source"].get("message_id") == str(old.pk))
        assert over["superseded_by"]["text"] == newer
        assert over["valid_until"] == "2026-11-21T20:00:00Z"
        before = search(api_client(alice), q=f"Hello {older}", as_of="2026-09-30")
        assert [item["valid_until"] for item in before] == [None] * len(before)
        assert str(old.pk) in str(before)
        assert str(new.pk) not in str(before)
    assert Profile.objects.get().text == f"- {newer}"


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.django_db(transaction=True)
def test_a_date_that_the_nightly_model_names_is_in_the_time_zone_of_the_user(alice: User) -> None:
    alice.time_zone = "Asia/Tokyo"
    alice.save()
    older, newer = "On March 10, 2026 the cranes came back.", "The cranes have left again."
    early = datetime(2026, 3, 9, 22, tzinfo=UTC)  # 07:00 on March 10 in Tokyo
    [old] = say(new_conversation(alice), older, at=early)
    say(new_conversation(alice), *(f"The cranes call, number {n}." for n in range(60)), role="user",
        at=early + timedelta(days=1))  # fmt: skip
    say(new_conversation(alice), newer, at=NOW)
    for conversation in Conversation.objects.all():
        index_conversation(conversation.pk)
    add_entry(user=alice, text=newer, now=NOW)
    with ModelServer(default=says(f"- {newer}\n\n## Over\n- {older} => {newer}")) as server:
        make_model(server, name="Main", is_default=True)
        row = queue_consolidation(user_id=alice.pk, now=NOW)
        assert row is not None
        consolidate(row.pk)
    assert StoredClaim.objects.filter(message_id=old.pk).exclude(superseded_by=None).exists()


@pytest.mark.sqlite
@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_a_model_names_but_nobody_made_changes_nothing(alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, "The cranes came back on Tuesday.", "Lovely.", at=MAY)
    index_conversation(conversation.pk)
    add_entry(user=alice, text="The harbour froze.", now=NOW)
    with ModelServer(default=says("- Cranes\n\n## Over\n- I own a yacht => I sold my yacht")) as server:
        make_model(server, name="Main", is_default=True)
        row = queue_consolidation(user_id=alice.pk, now=NOW)
        assert row is not None
        consolidate(row.pk)
    assert not StoredClaim.objects.exists()
    assert Profile.objects.get().text == "- Cranes"


@pytest.mark.django_db(transaction=True)
def test_a_statement_deleted_after_a_model_named_it_claims_nothing(alice: User):
    old, new = (say(new_conversation(alice), words, at=at)[0] for words, at in ((OLD, MAY), (NEW, NOW)))
    older = StatementPlace(OLD, 0, len(OLD), MAY, message_id=old.pk)
    newer = StatementPlace(NEW, 0, len(NEW), NOW, message_id=new.pk)
    old.conversation.delete()
    store_superseded_pairs(alice.pk, [(older, newer)])
    assert not StoredClaim.objects.exists()
