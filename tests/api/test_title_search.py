"""The sidebar's search by title works the same on SQLite and PostgreSQL."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.selectors.conversations import conversation_page
from chatapp.operations import clock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("query", ["äpfel", "ÄPFEL", "привет", "ΑΘΗΝΑ", " Αθηνα\n"])
def test_a_title_is_found_in_any_case_in_any_script(alice: User, query: str) -> None:
    made = create_conversation(user=alice, now=clock.now(), title="Äpfel, Привет, Αθηνα")
    rows, _ = conversation_page(alice, query=query, archived=False, cursor=None, limit=10)
    assert [row.pk for row in rows] == [made.pk]


@pytest.mark.parametrize("title", ["Caf\u00e9", "Cafe\u0301"], ids=["composed", "decomposed"])
@pytest.mark.parametrize("query", ["CAF\u00c9", "cafe\u0301"], ids=["composed", "decomposed"])
def test_a_title_is_found_in_composed_and_decomposed_form(alice: User, title: str, query: str) -> None:
    made = create_conversation(user=alice, now=clock.now(), title=title)
    rows, _ = conversation_page(alice, query=query, archived=False, cursor=None, limit=10)
    assert [row.pk for row in rows] == [made.pk]


@pytest.mark.parametrize("query", ["a\0b", "\ud800"])
def test_a_query_that_no_title_can_contain_finds_nothing(alice: User, query: str) -> None:
    create_conversation(user=alice, now=clock.now(), title="Apples")
    assert conversation_page(alice, query=query, archived=False, cursor=None, limit=10) == ([], False)
