"""Usage by user, group, model, agent, purpose and day: users see their own, operators that of all users."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.operations import clock
from chatapp.providers.models import Usage

pytestmark = pytest.mark.django_db

Clients = Callable[..., Client]
ADDRESS = "/api/v1/admin/usage"


@pytest.fixture
def spent(alice: User, bob: User) -> None:
    """Store usage of 100 tokens by alice with an agent, and of 10 tokens with a cost by bob in a group."""
    agent = Agent.objects.create(name="Tutor")
    conversation = create_conversation(user=alice, now=clock.now())
    conversation.agent = agent
    conversation.save(update_fields=["agent"])
    Group.objects.create(name="Research").user_set.add(bob)  # type: ignore[attr-defined]
    common: dict[str, Any] = {"output_tokens": 0, "exact": True, "model_name": "Main", "purpose": "chat"}
    Usage.objects.create(user=alice, conversation=conversation, input_tokens=100, **common)
    Usage.objects.create(user=bob, input_tokens=10, cost="0.25", **common)


def rows_of(answer: Any) -> dict[str, int]:
    assert answer.status_code == 200, answer.content
    return {row["key"]: row["input_tokens"] for row in answer.json()["items"]}


@pytest.mark.parametrize(
    ("group_by", "rows"),
    [
        ("user", {"alice@example.com": 100, "bob@example.com": 10}),
        ("group", {"": 100, "Research": 10}),
        ("agent", {"": 10, "Tutor": 100}),
        ("model", {"Main": 110}),
        ("purpose", {"chat": 110}),
    ],
)
def test_an_operator_sees_the_usage_of_all_users(
    spent: None, api_client: Clients, admin_user: Any, group_by: str, rows: dict[str, int]
) -> None:
    answer = api_client(admin_user).get(ADDRESS, {"group_by": group_by})
    assert rows_of(answer) == rows
    assert answer.json()["total"]["input_tokens"] == 110


def test_users_see_only_their_own_usage(spent: None, api_client: Clients, alice: User, charlie: User) -> None:
    assert rows_of(api_client(alice).get("/api/v1/usage", {"group_by": "agent"})) == {"Tutor": 100}
    assert rows_of(api_client(charlie).get("/api/v1/usage", {"group_by": "agent"})) == {}
    assert api_client(alice).get("/api/v1/usage", {"group_by": "user"}).status_code == 422


def test_only_operators_with_the_admin_scope_see_the_usage_of_all_users(
    spent: None, api_client: Clients, charlie: User, admin_user: Any
) -> None:
    assert api_client(charlie).get(ADDRESS).status_code == 403
    assert api_client(admin_user, scopes=["chat", "read"]).get(ADDRESS).status_code == 403


def test_the_csv_file_has_the_same_rows_and_escapes_formulas(
    spent: None, api_client: Clients, admin_user: Any, bob: User
) -> None:
    bob.email = "=cmd@example.com"
    bob.save(update_fields=["email"])
    answer = api_client(admin_user).get(ADDRESS, {"group_by": "user", "format": "csv"})
    assert answer["Content-Type"].startswith("text/csv")
    first, *rows = csv.reader(io.StringIO(answer.content.decode()))
    assert first[:3] == ["user", "calls", "input_tokens"]
    assert {row[0]: row[-1] for row in rows} == {"alice@example.com": "", "'=cmd@example.com": "0.25"}
