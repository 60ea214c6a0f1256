import logging
import re
from collections.abc import Iterator
from datetime import UTC
from itertools import pairwise

import numpy as np
import pytest

from agents.errors import ModelError
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.operations.database.work_budget import Budget
from chatapp.operations.monitoring import doctor, metrics
from chatapp.recall import embedding
from chatapp.recall import tasks as recall_tasks
from chatapp.recall.actions import indexing as index_actions
from chatapp.recall.actions import removal
from chatapp.recall.actions.vectors import DocumentVectors, begin_vectors, drop_other_vectors, store_vectors
from chatapp.recall.models import SearchCodes, SearchOwner, SearchVectors
from chatapp.recall.selectors.user_index import SearchFilter, open_index
from chatapp.recall.turn_recall import recall_for
from chatapp.recall.user_search import search_memory
from chatapp.recall.vectors import NEAREST_BY_CODE, OWNER
from memory.recall.ranking import RecallSize, add_nearness
from tests.memory_store.rows import NOW, new_conversation, say
from tests.search.test_search_index import filler
from tests.servers.embeddings_server import EmbeddingsServer

pytestmark = pytest.mark.django_db

CONCEPTS = {"pet": ["greyhound", "dog", "pet"], "illness": ["swelled", "allergic", "rash"]}
SAID = "We adopted a greyhound. The train was late that evening."
QUESTION = "Do you own a pet?"


@pytest.fixture
def server(settings) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer(CONCEPTS, api_key="secret") as running:
        settings.EMBEDDINGS_BASE_URL = running.base_url
        settings.EMBEDDINGS_MODEL = "concepts"
        settings.EMBEDDINGS_API_KEY = "secret"
        embedding._health.rests_until = 0.0
        yield running


@pytest.fixture
def conversation(alice: User) -> Conversation:
    conversation = new_conversation(alice)
    say(conversation, *filler(60), SAID, *filler(60))
    index_actions.index_conversation(conversation.pk)
    return conversation


def recalled(user: User, question: str = QUESTION) -> str:
    room = RecallSize(200, 800)
    return "\n".join(turn.text for turn in recall_for(user_id=user.pk, question=question, now=NOW, room=room))


def test_a_turn_of_the_same_meaning_in_other_words_is_recalled(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    assert "greyhound" not in recalled(alice)
    assert embedding.embed_index(alice.pk) == 121
    assert "greyhound" in recalled(alice)
    found = search_memory(user_id=alice.pk, query=QUESTION, limit=3, now=NOW, zone=UTC)
    assert SAID in [item.text for item in found]


@pytest.mark.sqlite
def test_without_an_endpoint_recall_uses_words_alone(
    alice: User, conversation: Conversation, server: EmbeddingsServer, settings
):
    settings.EMBEDDINGS_MODEL = ""
    assert embedding.embed_index(alice.pk) == 0
    assert "greyhound" in recalled(alice, "What about the greyhound?")
    assert server.requests == []


def resting() -> float:
    [metric] = metrics.embeddings_resting.collect()
    return metric.samples[0].value


@pytest.mark.sqlite
def test_an_endpoint_that_is_down_is_called_once_and_reported_in_log_and_metrics(
    alice: User, conversation: Conversation, server: EmbeddingsServer, caplog: pytest.LogCaptureFixture
):
    embedding.embed_index(alice.pk)
    server.is_down = True
    asked = len(server.requests)
    with caplog.at_level(logging.WARNING):
        assert "greyhound" in recalled(alice, "What about the greyhound?")
        assert "greyhound" in recalled(alice, "And the greyhound?")
    assert len(server.requests) == asked + 1
    assert "searching by words only" in caplog.text
    assert resting() == 1
    embedding._health.rests_until = 0.0
    assert resting() == 0


@pytest.mark.sqlite
def test_the_doctor_checks_the_endpoint(server: EmbeddingsServer):
    well, languages = doctor.check_embeddings()
    assert well.what == "answers, 96 dimensions; 0 texts are about 0 tokens to embed and 0 MB"
    assert "Chinese" in languages.what
    assert "German" not in languages.what
    server.is_down = True
    (finding,) = doctor.check_embeddings()
    assert not finding.is_well
    assert "EMBEDDINGS_BASE_URL" in finding.remedy


def test_the_doctor_estimates_the_cost_of_embeddings_before_they_are_enabled(
    alice: User, conversation: Conversation, settings
):
    settings.EMBEDDINGS_MODEL = ""
    (finding,) = doctor.check_embeddings()
    assert finding.is_well
    assert re.search(
        r"[1-9]\d* texts are about [1-9][\d,]* tokens to embed \(EMBEDDINGS_MODEL\)", finding.what
    )


@pytest.mark.sqlite
def test_a_worker_resumes_embedding_once_the_endpoint_is_back(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    server.is_down = True
    recall_tasks.embed_index(str(alice.pk))
    assert not SearchVectors.objects.exists()
    server.is_down = False
    recall_tasks.embed_index(str(alice.pk))
    say(conversation, "The zeppelin has landed.")
    index_actions.index_conversation(conversation.pk)
    assert embedding.embed_index(alice.pk) == 1
    owner = SearchOwner.objects.get()
    assert owner.embedded_ordinal == owner.next_ordinal == 122
    assert SearchCodes.objects.count() == 1  # later codes are appended
    assert stored_vectors() > 122


@pytest.mark.sqlite
def test_a_text_that_the_endpoint_refuses_does_not_block_others(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    say(conversation, "The zeppelin has landed.")
    index_actions.index_conversation(conversation.pk)
    server.refused = frozenset({"The zeppelin has landed."})
    assert embedding.embed_index(alice.pk) > 0
    owner = SearchOwner.objects.get()
    assert owner.embedded_ordinal == owner.next_ordinal
    assert "greyhound" in recalled(alice)
    server.refused = frozenset({embedding.HARMLESS, "The boiler is new."})
    say(conversation, "The boiler is new.")
    index_actions.index_conversation(conversation.pk)
    with pytest.raises(ModelError):
        embedding.embed_index(alice.pk)


def test_vectors_of_another_model_are_replaced(
    alice: User, conversation: Conversation, server: EmbeddingsServer, settings
):
    embedding.embed_index(alice.pk)
    settings.EMBEDDINGS_MODEL = "other"
    assert "greyhound" not in recalled(alice)
    assert embedding.embed_index(alice.pk) == 121
    assert "greyhound" in recalled(alice)
    assert SearchOwner.objects.get().vector_model == "other"


def test_vectors_of_another_model_are_deleted_in_pieces_and_not_compared(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    """A change of EMBEDDINGS_MODEL affects all users. Deleting all vectors in one transaction would block writers."""
    embedding.embed_index(alice.pk)
    left, budget = [SearchVectors.objects.count()], Budget(rows=50, seconds=float("inf"))
    while not drop_other_vectors(user_id=alice.pk, model="other", budget=budget):
        left.append(SearchVectors.objects.count())
        assert SearchOwner.objects.get().vector_model == ""
    assert len(left) > 2
    assert max(before - after for before, after in pairwise(left)) <= 50
    assert not SearchVectors.objects.exists()
    assert not SearchCodes.objects.exists()
    assert begin_vectors(user_id=alice.pk, model="other") == range(121)


def test_removed_messages_lose_vectors(alice: User, conversation: Conversation, server: EmbeddingsServer):
    embedding.embed_index(alice.pk)
    size = stored_vectors()
    gone = conversation.messages.get(position=60)
    removal.remove_sources([gone.pk])
    assert size - stored_vectors() == 3  # the turn and its two sentences
    forget_whole_conversation(alice, conversation.pk, now=NOW)
    assert stored_vectors() == 0


def test_vectors_stored_in_any_order_are_removed_with_their_messages(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    drop_other_vectors(user_id=alice.pk, model="concepts")
    missing = begin_vectors(user_id=alice.pk, model="concepts")
    documents = [DocumentVectors(ordinal, [[1.0] * 96]) for ordinal in missing]
    documents[0], documents[-1], documents[60] = documents[60], documents[0], documents[-1]
    assert store_vectors(user_id=alice.pk, model="concepts", ordinals=missing, documents=documents)
    removal.remove_sources([conversation.messages.get(position=0).pk])
    assert stored_vectors() == len(missing) - 1


def stored_vectors() -> int:
    """Return the number of vectors, which is the number of their codes."""
    of_codes = [
        ordinal
        for row in SearchCodes.objects.all()
        for ordinal in np.frombuffer(row.ordinals, OWNER).tolist()
    ]
    assert set(of_codes) == set(SearchVectors.objects.values_list("ordinal", flat=True))
    return len(of_codes)


def test_a_message_can_be_removed_after_the_vector_length_changed(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    embedding.embed_index(alice.pk)
    server.dimensions *= 2
    say(conversation, *filler(20))
    index_actions.index_conversation(conversation.pk)
    embedding.embed_index(alice.pk)
    size = stored_vectors()
    removal.remove_sources([conversation.messages.get(position=60).pk])
    assert size - stored_vectors() == 3


@pytest.mark.sqlite
def test_vectors_of_other_users_are_not_searched(
    alice: User, charlie: User, conversation: Conversation, server: EmbeddingsServer
):
    embedding.embed_index(alice.pk)
    assert recalled(charlie) == ""


def test_an_open_index_ignores_vectors_that_were_stored_later(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    say(conversation, "A quiet evening.")
    index = open_index(alice.pk)
    elsewhere = new_conversation(alice)
    say(elsewhere, "We adopted a greyhound.")
    index_actions.index_conversation(elsewhere.pk)
    embedding.embed_index(alice.pk)
    asked = embedding.embed_question(QUESTION)
    near = index.near(asked or [], "concepts").nearness
    assert near
    assert max(near) < index.first_unstored


def test_near_documents_are_merged_into_the_ranking_by_words():
    fused = add_nearness({1: 10.0, 2: 9.0, 3: 1.0}, {2: 2.0, 4: 3.0})
    assert list(fused) == [2, 1, 4, 3]
    assert fused[1] == 10.0


@pytest.mark.sqlite
def test_a_filter_applies_before_the_nearest_are_counted(
    alice: User, conversation: Conversation, server: EmbeddingsServer
):
    elsewhere = new_conversation(alice)
    say(elsewhere, *[f"Your pet dog {number} is a greyhound." for number in range(NEAREST_BY_CODE + 10)])
    index_actions.index_conversation(elsewhere.pk)
    embedding.embed_index(alice.pk)
    only = SearchFilter(conversation_id=conversation.pk)
    found = search_memory(user_id=alice.pk, query=QUESTION, limit=3, now=NOW, zone=UTC, only=only)
    assert SAID in [item.text for item in found]
