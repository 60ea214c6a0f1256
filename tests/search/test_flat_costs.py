"""What a search costs does not grow with what is indexed already: by the plans of its statements, and their number."""

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
from chatapp.recall.selectors.unindexed import conversations_behind, overlooked_conversations
from chatapp.recall.selectors.user_index import open_index
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def plans() -> Iterator[list[str]]:
    """Gather how the database carries out the statements inside. PostgreSQL reads small tables whole if it may."""
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


def test_what_is_not_indexed_is_found_by_an_index_that_holds_nothing_else(alice: User) -> None:
    now = clock.now()
    Conversation.objects.bulk_create(
        Conversation(user=alice, title=f"Chat {number}", created_at=now, last_activity_at=now)
        for number in range(2_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chatapp_conversation")  # of a small table any index will do
    with plans() as found:
        conversations_behind(alice.pk)
        overlooked_conversations(clock.now())
    assert "conversation_behind" in found[0]
    assert "conversation_overlooked" in found[1] or "conversation_behind" in found[1]


def test_many_conversations_that_are_not_indexed_are_read_in_one_statement(
    alice: User, django_assert_num_queries
) -> None:
    for number in range(12):
        say(new_conversation(alice), f"Note {number} is about Lisbon", "Noted.")
    with django_assert_num_queries(3):  # which they are, the owner, their messages
        index = open_index(alice.pk)
    assert index.document_count == 24


def test_of_documents_in_no_block_only_new_ones_are_read(alice: User) -> None:
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
