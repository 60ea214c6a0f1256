"""The pages of a conversation's messages: newest, older, newer, and around a message."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Branch, Conversation
from tests.memory_store.rows import new_conversation, say


def path_of(conversation: Conversation) -> str:
    return f"/api/v1/conversations/{conversation.pk}/messages"


def page(client: Client, path: str, **query: Any) -> dict[str, Any]:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def positions(found: dict[str, Any]) -> list[int]:
    return [item["position"] for item in found["items"]]


def test_pages_are_newest_first_and_messages_oldest_first(alice_client: Client, alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, *(f"Message {number}" for number in range(7)))
    path = path_of(conversation)
    newest = page(alice_client, path, limit=3)
    assert [item["content"] for item in newest["items"]] == ["Message 4", "Message 5", "Message 6"]
    older = page(alice_client, path, limit=3, before=newest["next_cursor"])
    assert [item["position"] for item in older["items"]] == [1, 2, 3]
    by_id = page(alice_client, path, limit=3, before=newest["items"][0]["id"])
    assert by_id == older
    oldest = page(alice_client, path, limit=3, before=older["next_cursor"])
    assert [item["position"] for item in oldest["items"]] == [0]
    assert oldest["next_cursor"] is None


def test_a_conversation_can_be_paged_from_its_first_message_to_its_newest(
    alice_client: Client, alice: User
) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, *(f"Message {number}" for number in range(7)))
    path = path_of(conversation)
    first = page(alice_client, path, limit=3, after=rows[0].pk)
    assert (positions(first), first["next_cursor"], first["newer_cursor"]) == ([1, 2, 3], "1", "3")
    last = page(alice_client, path, limit=3, after=first["newer_cursor"])
    assert (positions(last), last["next_cursor"], last["newer_cursor"]) == ([4, 5, 6], "4", None)
    assert page(alice_client, path, after=6) == {"items": [], "next_cursor": None, "newer_cursor": None}
    assert page(alice_client, path, limit=3)["newer_cursor"] is None
    assert page(alice_client, path, limit=3, before=first["next_cursor"])["newer_cursor"] == "0"


@pytest.mark.parametrize(
    ("at", "limit", "seen", "older", "newer"),
    [
        (10, 4, [8, 9, 10, 11], "8", "11"),
        (10, 5, [8, 9, 10, 11, 12], "8", "12"),
        (10, 1, [10], "10", "10"),
        (0, 4, [0, 1], None, "1"),
        (19, 4, [17, 18, 19], "17", None),
        (2, 50, list(range(20)), None, None),
    ],
)
def test_a_page_around_a_message_has_it_in_the_middle(
    alice_client: Client,
    alice: User,
    at: int,
    limit: int,
    seen: list[int],
    older: str | None,
    newer: str | None,
) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, *(f"Message {number}" for number in range(20)))
    found = page(alice_client, path_of(conversation), around=rows[at].pk, limit=limit)
    assert (positions(found), found["next_cursor"], found["newer_cursor"]) == (seen, older, newer)


def test_a_page_around_a_message_of_another_branch_is_refused_until_that_branch_is_shown(
    alice_client: Client, alice: User
) -> None:
    conversation = new_conversation(alice)
    shared, left, *_ = say(conversation, "Shared", "Left", "Left on")
    conversation.branch = Branch.objects.create(
        conversation=conversation, lineage=[[str(shared.branch_id), shared.position]]
    )
    conversation.save(update_fields=["branch"])
    taken, newest = say(conversation, "Taken", "Taken on")
    path = path_of(conversation)
    assert positions(page(alice_client, path, around=taken.pk)) == [0, 3, 4]
    assert positions(page(alice_client, path, around=shared.pk, limit=2)) == [0]
    assert positions(page(alice_client, path, after=shared.pk)) == [3, 4]
    refused = alice_client.get(path, {"around": left.pk})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "other_branch")
    alice_client.post(f"{path}/{left.pk}/show")
    assert positions(page(alice_client, path, around=left.pk)) == [0, 1, 2]
    assert alice_client.get(path, {"around": newest.pk}).status_code == 409


def test_other_users_cannot_see_a_page_around_a_message(
    alice_client: Client, charlie_client: Client, alice: User
) -> None:
    conversation, other = new_conversation(alice), new_conversation(alice)
    [row], [elsewhere] = say(conversation, "Mine"), say(other, "Elsewhere")
    assert charlie_client.get(path_of(conversation), {"around": row.pk}).status_code == 404
    assert alice_client.get(path_of(conversation), {"around": elsewhere.pk}).status_code == 404


@pytest.mark.parametrize("field", ["before", "after"])
@pytest.mark.parametrize(("place", "status"), [("nonsense", 404), ("9" * 30, 422), ("-1", 404), ("²", 404)])
def test_an_invalid_position_is_refused(
    alice_client: Client, alice: User, field: str, place: str, status: int
) -> None:
    assert alice_client.get(path_of(new_conversation(alice)), {field: place}).status_code == status


def test_before_after_and_around_exclude_each_other(alice_client: Client, alice: User) -> None:
    answer = alice_client.get(path_of(new_conversation(alice)), {"before": "4", "after": "2"})
    assert answer.status_code == 422
    assert "one of before, after and around" in answer.json()["error"]["message"]


def test_a_page_of_a_long_conversation_needs_few_queries(
    alice_client: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, *(f"Message {number}" for number in range(600)))
    path = path_of(conversation)
    with django_assert_max_num_queries(9):
        assert len(page(alice_client, path, limit=200)["items"]) == 200
    with django_assert_max_num_queries(12):
        assert len(page(alice_client, path, around=rows[300].pk, limit=200)["items"]) == 200
