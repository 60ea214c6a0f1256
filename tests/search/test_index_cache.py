"""A process's cache of an index is never older than the rows."""

from dataclasses import dataclass

import pytest
from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.recall.actions import indexing as index_actions
from chatapp.recall.actions import removal
from chatapp.recall.index_cache import IndexCache
from chatapp.recall.index_format import BLOCK, blank_rows
from chatapp.recall.models import SearchBlock, SearchOwner
from chatapp.recall.selectors.sealed_index import open_sealed
from tests.memory_store.rows import new_conversation, say
from tests.search.test_search_index import filler, texts

pytestmark = pytest.mark.django_db

SAID = "The word is xylophone."


@pytest.fixture
def conversation(alice: User) -> Conversation:
    conversation = new_conversation(alice)
    say(conversation, *filler(300), SAID)
    index_actions.index_conversation(conversation.pk)
    index_actions.seal_documents(1, user_id=alice.pk)
    assert texts(alice, "xylophone") == [SAID]
    return conversation


def test_sealed_blocks_are_read_once(alice: User, conversation: Conversation, django_assert_num_queries):
    texts(alice, "xylophone")
    with django_assert_num_queries(3):  # the unindexed conversations, the owner, the texts
        assert texts(alice, "xylophone") == [SAID]


def test_a_message_removed_since_the_last_search_is_not_found(alice: User, conversation: Conversation):
    removal.remove_sources([conversation.messages.get(position=300).pk])
    assert texts(alice, "xylophone") == []
    assert texts(alice, "topic3")


def test_a_message_sealed_since_the_last_search_is_found(alice: User, conversation: Conversation):
    say(conversation, *filler(300), "Another xylophone.")
    index_actions.index_conversation(conversation.pk)
    assert set(texts(alice, "xylophone")) == {SAID, "Another xylophone."}


def test_a_removal_that_was_rolled_back_is_not_cached(alice: User, conversation: Conversation):
    with transaction.atomic():
        removal.remove_sources([conversation.messages.get(position=300).pk])
        assert texts(alice, "xylophone") == []
        transaction.set_rollback(True)
    assert texts(alice, "xylophone") == [SAID]
    removal.remove_sources([conversation.messages.get(position=299).pk])
    assert texts(alice, "xylophone") == [SAID]


def test_a_rebuilt_index_is_read_again(alice: User, conversation: Conversation):
    index_actions.delete_index(alice.pk)
    say(conversation, "Another xylophone.")
    index_actions.rebuild_index(alice.pk)
    assert set(texts(alice, "xylophone")) == {SAID, "Another xylophone."}


@dataclass
class Thing:
    size_bytes: int


def test_a_full_cache_evicts_the_least_recently_used_entry():
    cache = IndexCache[Thing](100)
    first, second, third = Thing(40), Thing(40), Thing(40)
    cache.put(1, first)
    cache.put(2, second)
    assert cache.get(1) is first
    cache.put(3, third)
    assert (cache.get(1), cache.get(2), cache.get(3)) == (first, None, third)
    first.size_bytes = 90
    cache.put(1, first)
    assert (cache.get(1), cache.get(3)) == (first, None)
    cache.put(4, Thing(200))
    assert cache.get(4) is None


def test_a_search_ignores_a_block_sealed_after_it_began(alice: User):
    owner = SearchOwner.objects.create(user=alice, next_ordinal=BLOCK - 100, sealed_ordinal=BLOCK - 100)
    for number, length in ((0, BLOCK), (1, 4_096)):  # sealed by a worker since then
        SearchBlock.objects.create(owner=owner, number=number, columns=blank_rows(length).tobytes())
    assert open_sealed(owner).end == BLOCK - 100
