"""The cost of a search does not grow with the index, as its query plans and number of queries show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.selectors.unindexed import overlooked_conversations, unindexed_conversations
from chatapp.recall.selectors.user_index import open_index
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def plans() -> Iterator[list[str]]:
    """Collect the query plans of the block. Forbid sequential scans, which PostgreSQL prefers for small tables."""
    found: list[str] = []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")
        with CaptureQueriesContext(connection) as captured:
            yield found
        explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
        for query in captured.captured_queries:
            cursor.execute(explain + query["sql"].replace("%", "%%"))
            found.append("\n".join(str(row) for row in cursor.fetchall()))
        if connection.vendor == "postgresql":
            cursor.execute("RESET enable_seqscan")


def test_unindexed_conversations_are_found_by_a_partial_index(alice: User) -> None:
    now = clock.now()
    Conversation.objects.bulk_create(
        Conversation(user=alice, title=f"Chat {number}", created_at=now, last_activity_at=now)
        for number in range(2_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chatapp_conversation")  # else the table seems small, and any index will do
    with plans() as found:
        unindexed_conversations(alice.pk)
        overlooked_conversations(clock.now())
    assert "conversation_behind" in found[0]
    assert "conversation_overlooked" in found[1] or "conversation_behind" in found[1]


def test_many_unindexed_conversations_are_read_in_one_statement(
    alice: User, django_assert_num_queries
) -> None:
    for number in range(12):
        say(new_conversation(alice), f"Note {number} is about Lisbon", "Noted.")
    with django_assert_num_queries(3):  # the unindexed conversations, the owner, the messages
        index = open_index(alice.pk)
    assert index.document_count == 24


def test_only_new_unsealed_documents_are_read_again(alice: User) -> None:
    conversation = new_conversation(alice)
    for number in range(5):
        say(conversation, f"Note {number} is about Lisbon", "Noted.")
    index_conversation(conversation.pk)
    assert open_index(alice.pk).document_count == 10
    say(conversation, "Another xylophone", "Noted.")
    index_conversation(conversation.pk)
    with CaptureQueriesContext(connection) as captured:
        assert open_index(alice.pk).document_count == 12
    [read] = [query["sql"] for query in captured if "chatapp_searchdocument" in query["sql"]]
    assert "ordinal >= 10 AND ordinal < 12" in read
