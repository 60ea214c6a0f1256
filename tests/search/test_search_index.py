import threading
from collections.abc import Sequence
from datetime import UTC, timedelta

import pytest
from django.db import connection

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.entries import record_entry
from chatapp.recall.actions import indexing as index_actions
from chatapp.recall.actions import removal
from chatapp.recall.models import SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.turn_recall import recall_for
from chatapp.recall.user_search import search_memory
from memory.recall.ranking import RecallSize
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db


def texts(user: User, query: str, limit: int = 5) -> list[str]:
    return [item.text for item in search_memory(user_id=user.pk, query=query, limit=limit, now=NOW, zone=UTC)]


def filler(count: int) -> Sequence[str]:
    return [f"We talked about topic{number % 97} and topic{number % 13} again." for number in range(count)]


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return new_conversation(alice)


def test_a_turn_is_found_as_soon_as_it_is_said(alice: User, conversation: Conversation):
    say(conversation, "The boiler is in the cellar.")
    assert texts(alice, "boilers") == ["The boiler is in the cellar."]
    say(conversation, "The boiler makes a noise.")
    assert set(texts(alice, "boiler")) == {"The boiler is in the cellar.", "The boiler makes a noise."}


def test_old_turns_are_found_among_many_sealed_ones(alice: User, conversation: Conversation):
    say(conversation, "My locker code is 4711.", *filler(1_500), "The weather is dull.")
    index_actions.index_conversation(conversation.pk)
    assert texts(alice, "what is the code of my locker?")[0] == "My locker code is 4711."
    owner = SearchOwner.objects.get()
    assert owner.sealed_ordinal > 1_000
    assert owner.document_count == SearchDocument.objects.count() == 1_502


def test_indexing_again_adds_nothing(alice: User, conversation: Conversation):
    say(conversation, *filler(300))
    assert index_actions.index_conversation(conversation.pk) == 300
    assert index_actions.index_conversation(conversation.pk) == 0
    assert SearchDocument.objects.count() == 300


def test_a_search_before_indexing_finds_the_same_and_writes_nothing(alice: User, conversation: Conversation):
    say(conversation, *filler(300), "The lamp is broken.", "Which lamp?", "The one on the desk.")
    index_actions.index_conversation(conversation.pk)
    say(conversation, "I bought a new lamp.", *filler(40), "It has a green shade.")
    say(new_conversation(alice), "A lamp for the cellar.", at=NOW + timedelta(days=1))
    rows = SearchDocument.objects.count()
    before = search_memory(user_id=alice.pk, query="Which lamp did I buy?", limit=20, now=NOW, zone=UTC)
    assert SearchDocument.objects.count() == rows
    for row in Conversation.objects.all():
        index_actions.index_conversation(row.pk)
    assert (
        search_memory(user_id=alice.pk, query="Which lamp did I buy?", limit=20, now=NOW, zone=UTC) == before
    )
    assert SearchDocument.objects.count() == rows + 43


def test_an_answer_is_found_only_once_it_is_complete(alice: User, conversation: Conversation):
    say(conversation, "Tell me about zebras.")
    [answer] = say(conversation, "Zebras are", status="streaming")
    assert texts(alice, "zebra") == ["Tell me about zebras."]
    Message.objects.filter(pk=answer.pk).update(
        status="complete", parts=[{"type": "text", "text": "Zebras are striped."}]
    )
    assert "Zebras are striped." in texts(alice, "zebra")


def test_a_temporary_conversation_is_never_found(alice: User):
    say(new_conversation(alice, temporary=True), "The password is swordfish.")
    assert texts(alice, "swordfish") == []
    assert not SearchDocument.objects.exists()


def test_messages_of_other_users_are_not_found(alice: User, charlie: User, conversation: Conversation):
    say(conversation, *filler(300), "The treasure lies under the oak.")
    assert texts(alice, "treasure")
    say(new_conversation(charlie), "The treasure of the sierra.")
    assert texts(charlie, "treasure oak") == ["The treasure of the sierra."]
    room = RecallSize(500, 2_000)
    assert recall_for(user_id=charlie.pk, question="Where is the oak?", now=NOW, room=room) == []


def test_a_question_also_finds_the_turn_next_to_its_match(alice: User, conversation: Conversation):
    say(conversation, *filler(20), "What is your dog's name?", "Rex!", *filler(20))
    assert "Rex!" in texts(alice, "What is the name of my dog?", limit=3)
    assert texts(alice, "dog") == ["What is your dog's name?"]


@pytest.mark.parametrize(
    ("asked", "answer", "question", "word"),
    [
        ("请问您的狗叫什么名字？", "旺财。", "我的狗叫什么名字？", "名字"),
        ("请问您的狗叫什么名字？", "旺财。", "我的狗叫什么名字", "名字"),
        ("犬の名前は何ですか。", "ポチ。", "私の犬の名前は何ですか", "名前"),
        ("หมาของคุณชื่ออะไร", "ด่าง", "หมาของฉันชื่ออะไร", "อะไร"),
        ("ما اسم كلبك؟", "ريكس", "اسم كلبك؟", "كلبك"),
    ],
)
def test_a_question_without_spaces_also_finds_the_answer_beside_its_match(
    alice: User, conversation: Conversation, asked: str, answer: str, question: str, word: str
):
    say(conversation, *filler(10), asked, answer, *filler(10))
    assert answer in texts(alice, question, limit=3)
    assert texts(alice, word) == [asked]


def test_a_single_word_does_not_match_irregular_forms(alice: User, conversation: Conversation):
    say(conversation, "We drove to the Jura.", *filler(20))
    assert texts(alice, "drive") == []
    assert texts(alice, "Where did we drive?")[0] == "We drove to the Jura."


def test_a_name_that_is_also_a_verb_form_finds_the_person(alice: User, conversation: Conversation):
    said = "Drew moved to Basel with two cats last May."
    say(conversation, said, *(f"I draw bird number {number}." for number in range(40)))
    assert texts(alice, "Drew", limit=50) == [said]
    assert texts(alice, "Where does Drew live?")[0] == said


def test_the_person_asked_about_comes_first(alice: User, conversation: Conversation):
    say(conversation, *filler(8), "Ann: I moved to Oslo.", *filler(8), "Ben: I moved to Rome.", *filler(8))
    assert texts(alice, "Where did Ben move?")[0] == "Ben: I moved to Rome."
    assert texts(alice, "Where did Ann move?")[0] == "Ann: I moved to Oslo."


def test_a_date_in_the_question_ranks_turns_of_that_day_first(alice: User, conversation: Conversation):
    for days in (100, 50, 1):
        say(conversation, f"I ran a race, {days}.", at=NOW - timedelta(days=days))
    assert texts(alice, "Which race did I run yesterday?")[0] == "I ran a race, 1."
    assert texts(alice, "the race on 13 August 2026")[0] == "I ran a race, 100."


@pytest.mark.parametrize(
    ("said", "asked"),
    [("私は東京に住んでいます。", "東京"), ("我住在北京的胡同里。", "北京"), ("저는 서울에 살아요.", "서울")],
)
def test_two_characters_find_a_word_of_a_script_without_spaces(
    alice: User, conversation: Conversation, said: str, asked: str
):
    say(conversation, said, *filler(10))
    assert texts(alice, asked)[0] == said


def test_a_search_returns_the_matching_piece_of_a_long_message(alice: User, conversation: Conversation):
    say(conversation, "Lorem ipsum dolor. " * 200 + "\n\nThe vault opens at noon.\n\n" + "Sit amet. " * 200)
    [piece] = texts(alice, "vault")
    assert "The vault opens at noon." in piece
    assert len(piece) < 1_300


def test_a_memory_entry_is_found(alice: User, conversation: Conversation):
    [message] = say(conversation, "…")
    record_entry(
        compaction=finished_compaction(conversation),
        text="Alice collects stamps.",
        first_message_id=message.pk,
        last_message_id=message.pk,
        at=NOW,
    )
    assert texts(alice, "stamp") == ["Alice collects stamps."]


def test_a_removed_message_is_deleted_sealed_or_not(alice: User, conversation: Conversation):
    sealed = say(conversation, *filler(300), "The word is xylophone.")[-1]
    index_actions.index_conversation(conversation.pk)
    index_actions.seal_documents(1, user_id=alice.pk)
    fresh = say(conversation, "The xylophone again.")[0]
    index_actions.index_conversation(conversation.pk)
    assert len(texts(alice, "xylophone")) == 2
    postings = SearchPosting.objects.count()
    removal.remove_sources([sealed.pk, fresh.pk])
    assert texts(alice, "xylophone") == []
    assert SearchPosting.objects.count() < postings
    assert SearchOwner.objects.get().document_count == SearchDocument.objects.count() == 300


def test_a_rebuilt_index_gives_the_same_answers(alice: User, conversation: Conversation):
    say(conversation, *filler(400), "The lamp is broken.")
    say(new_conversation(alice), "A lamp for the desk.", *filler(30), at=NOW + timedelta(days=1))
    before = search_memory(user_id=alice.pk, query="lamps topic3", limit=20, now=NOW, zone=UTC)
    index_actions.rebuild_index(alice.pk)
    assert search_memory(user_id=alice.pk, query="lamps topic3", limit=20, now=NOW, zone=UTC) == before


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_index_each_turn_once(alice: User, conversation: Conversation):
    say(conversation, *filler(1_200))

    def work() -> None:
        try:
            index_actions.index_conversation(conversation.pk)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    index_actions.index_conversation(conversation.pk)
    ordinals = list(SearchDocument.objects.order_by("ordinal").values_list("ordinal", flat=True))
    assert ordinals == list(range(1_200))
    assert SearchDocument.objects.values("source_id").distinct().count() == 1_200
