"""Conversations are created, changed, listed and deleted, and their messages are read one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation
from chatapp.providers.models import ModelConfig
from tests.memory_store.rows import new_conversation, say

CONVERSATIONS = "/api/v1/conversations"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def create(client: Client, **fields: Any) -> dict[str, Any]:
    answer = client.post(CONVERSATIONS, fields, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def change(client: Client, conversation_id: object, **fields: Any) -> Any:
    return client.patch(f"{CONVERSATIONS}/{conversation_id}", fields, content_type="application/json")


def page(client: Client, path: str = CONVERSATIONS, **query: Any) -> dict[str, Any]:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_new_conversation_has_the_requested_fields(alice_client: Client, model: ModelConfig) -> None:
    made = create(
        alice_client, title=" A \n title ", model="Test", temporary=True, context_policy={"keep_recent": 4}
    )
    assert (made["title"], made["model"], made["temporary"]) == ("A title", "Test", True)
    assert made["context_policy"] == {"keep_recent": 4}
    assert made["last_seq"] == 0
    assert alice_client.get(f"{CONVERSATIONS}/{made['id']}").json() == made


def test_a_conversation_needs_no_fields_and_no_body(alice_client: Client) -> None:
    assert create(alice_client)["title"] == ""
    assert alice_client.generic("POST", CONVERSATIONS).status_code == 201


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"title": "x" * 201}, 422, "title"),
        ({"context_policy": {"keep_recent": -1}}, 422, "context_policy"),
        ({"context_policy": {"speed": 1}}, 422, "context_policy"),
        ({"agent": "nobody"}, 404, None),
        ({"model": "nonsense"}, 404, None),
    ],
)
def test_invalid_fields_of_a_new_conversation_are_refused(
    alice_client: Client, fields: dict[str, Any], status: int, field: str | None
) -> None:
    answer = alice_client.post(CONVERSATIONS, fields, content_type="application/json")
    assert answer.status_code == status
    if field:
        assert answer.json()["error"]["details"][0]["field"] == field


def test_length_errors_count_the_characters_of_texts_and_the_items_of_lists(alice_client: Client) -> None:
    answer = alice_client.post(CONVERSATIONS, {"title": "x" * 201}, content_type="application/json")
    assert "at most 200 characters, not 201" in answer.json()["error"]["message"]
    answer = alice_client.post(
        "/api/v1/webhooks", {"url": "http://a", "events": []}, content_type="application/json"
    )
    assert "at least 1 item" in answer.json()["error"]["message"]


@pytest.mark.sqlite
@pytest.mark.mechanism("cowagent.commands")
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"context_size": 64_001}, "allows at most 64,000"),
        ({"max_output_tokens": 9_000}, "allows at most 8,000"),
        ({"max_tokens": 200_000}, "allows at most 64,000"),
        ({"max_input_tokens": 30_001}, "allows at most 30,000"),
        ({"max_input_tokens": 0}, "allows at most 30,000"),
        ({"recall_budget": 8_001}, "allows at most 8,000"),
        ({"max_steps": 16}, "allows at most 15"),
        ({"summary_model": "Dear"}, "only the operator can set this"),
        ({"compact_prompt": "Forget it all."}, "only the operator can set this"),
    ],
)
def test_a_users_context_policy_stays_within_the_operators_limits(
    alice_client: Client,
    api_client: Callable[..., Client],
    alice: User,
    model: ModelConfig,
    policy: dict[str, Any],
    message: str,
) -> None:
    ModelConfig.objects.update(
        context_size=64_000, max_output_tokens=8_000, context_policy={"max_input_tokens": 30_000}
    )
    made = create(alice_client, context_policy={"context_size": 32_000, "max_input_tokens": 20_000})
    for answer in (
        alice_client.post(CONVERSATIONS, {"context_policy": policy}, content_type="application/json"),
        change(alice_client, made["id"], context_policy=policy),
    ):
        assert answer.status_code == 422
        assert answer.json()["error"]["details"][0]["field"] == "context_policy"
        assert message in answer.json()["error"]["message"]
    kept = alice_client.get(f"{CONVERSATIONS}/{made['id']}").json()
    assert kept["context_policy"] == {"context_size": 32_000, "max_input_tokens": 20_000}
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    assert change(api_client(alice, ["chat"]), made["id"], context_policy=policy).status_code == 422
    assert change(api_client(alice, ["chat", "admin"]), made["id"], context_policy=policy).status_code == 200


def test_an_operators_token_without_the_admin_scope_cannot_declare_operator_hooks(
    api_client: Callable[..., Client], alice: User, model: ModelConfig
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    action = {"type": "log", "message": "to the operator"}
    hooks = [{"id": "h", "condition": {"type": "always"}, "action": action}]
    narrow, wide = api_client(alice, ["chat"]), api_client(alice, ["chat", "admin"])
    made = create(narrow)
    for refused in (
        change(narrow, made["id"], hooks=hooks),
        narrow.post(CONVERSATIONS, {"hooks": hooks}, content_type="application/json"),
    ):
        assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (422, "hooks")
    assert change(wide, made["id"], hooks=hooks).status_code == 200


def test_policy_limits_are_those_of_the_model_and_of_the_operators_agent(
    alice_client: Client, alice: User, model: ModelConfig
) -> None:
    small = ModelConfig.objects.create(
        name="Small", kind="openai", model_id="small", base_url=model.base_url, context_size=8_000
    )
    made = create(alice_client, model="Test", context_policy={"context_size": 30_000})
    refused = change(alice_client, made["id"], model=small.name, context_policy={"context_size": 30_000})
    assert "allows at most 8,000" in refused.json()["error"]["message"]
    Agent.objects.create(name="Diligent", context_policy={"max_steps": 40})
    Agent.objects.create(name="Mine", owner=alice, context_policy={"max_steps": 3})
    for agent, most in (("Diligent", 40), ("Mine", 15)):
        asked = change(alice_client, made["id"], agent=agent, context_policy={"max_steps": most})
        assert asked.status_code == 200, asked.content
        refused = change(alice_client, made["id"], context_policy={"max_steps": most + 1})
        assert f"allows at most {most}" in refused.json()["error"]["message"]


def test_a_change_updates_only_the_fields_sent_and_appends_one_event(
    alice_client: Client, model: ModelConfig
) -> None:
    made = create(alice_client, title="Old", model="Test")
    changed = change(alice_client, made["id"], title="New", pinned=True).json()
    assert (changed["title"], changed["pinned"], changed["model"]) == ("New", True, "Test")
    assert changed["last_seq"] == made["last_seq"] + 1
    assert changed["expires_at"] is None
    assert change(alice_client, made["id"], model=None).json()["model"] is None
    assert change(alice_client, made["id"]).json()["title"] == "New"


def test_a_title_cannot_be_null(alice_client: Client) -> None:
    made = create(alice_client)
    assert change(alice_client, made["id"], title=None).status_code == 422


def test_a_deleted_conversation_returns_404(alice_client: Client) -> None:
    made = create(alice_client)
    path = f"{CONVERSATIONS}/{made['id']}"
    assert alice_client.delete(path).status_code == 204
    assert alice_client.get(path).status_code == 404
    assert alice_client.delete(path).status_code == 404


def test_a_temporary_conversation_is_in_no_list(alice_client: Client, alice: User) -> None:
    made = create(alice_client, title="My secret", temporary=True)
    Conversation.objects.filter(pk=made["id"]).update(next_position=1)  # makes it unread
    queries: list[dict[str, Any]] = [{}, {"q": "secret"}, {"attention": True}, {"folder": "none"}]
    assert [page(alice_client, **query)["items"] for query in queries] == [[]] * len(queries)
    assert change(alice_client, made["id"], archived=True).status_code == 200
    assert page(alice_client, archived=True)["items"] == []
    assert alice_client.get(f"{CONVERSATIONS}/{made['id']}").json()["title"] == "My secret"


def test_the_list_is_newest_first_and_pages_do_not_overlap(alice_client: Client, alice: User) -> None:
    for number in range(7):
        # Two conversations share each moment, so that the id decides their order.
        new_conversation(alice, f"Talk {number}", NOON + timedelta(minutes=number // 2))
    seen, cursor = [], None
    for _ in range(4):
        found = page(alice_client, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item["title"] for item in found["items"]]
        cursor = found["next_cursor"]
    assert cursor is None
    expected = Conversation.objects.order_by("-last_activity_at", "-id").values_list("title", flat=True)
    assert seen == list(expected)


def test_activity_between_two_pages_does_not_disturb_the_second_page(
    alice_client: Client, alice: User
) -> None:
    rows = [
        new_conversation(alice, f"Talk {number}", NOON + timedelta(minutes=number)) for number in range(4)
    ]
    first = page(alice_client, limit=2)
    Conversation.objects.filter(pk=rows[0].pk).update(last_activity_at=NOON + timedelta(days=1))
    second = page(alice_client, limit=2, cursor=first["next_cursor"])
    assert [item["title"] for item in second["items"]] == ["Talk 1"]


def test_the_list_can_be_searched_and_hides_archived_conversations(alice_client: Client, alice: User) -> None:
    new_conversation(alice, "Apples and pears")
    archived = new_conversation(alice, "Old apples")
    change(alice_client, archived.pk, archived=True)
    assert [item["title"] for item in page(alice_client, q="APPLE")["items"]] == ["Apples and pears"]
    assert [item["title"] for item in page(alice_client, archived="true")["items"]] == ["Old apples"]
    assert page(alice_client, q="%")["items"] == []


@pytest.mark.parametrize("cursor", ["nonsense", "AAAA", "\u00e4", "MjAyNi0xMS0yMVQxMjowMDowMCB4", "\x00"])
def test_an_invalid_cursor_returns_422(alice_client: Client, cursor: str) -> None:
    answer = alice_client.get(CONVERSATIONS, {"cursor": cursor})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == "cursor"


def test_a_query_with_nul_finds_nothing_and_does_not_fail(alice_client: Client) -> None:
    assert page(alice_client, q="a\x00b")["items"] == []


def test_one_message_can_be_read(alice_client: Client, alice: User) -> None:
    conversation = new_conversation(alice)
    [row] = say(conversation, "Hello")
    message = alice_client.get(f"{CONVERSATIONS}/{conversation.pk}/messages/{row.pk}").json()
    assert (message["content"], message["role"], message["parent"]) == ("Hello", "user", None)
