"""Two people save the same name concurrently: the later one gets an error message."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client

from chatapp.agent_presets.models import Agent, McpServer
from chatapp.providers.actions import ensure_first_model
from tests.blocking import somebody_waits
from tests.tools.test_agents_panel import FORM
from tests.tools.test_mcp_servers import form_of
from tests.tools.test_presets import make

# SQLite has one writer at a time, so no other transaction can write between a check and its write.
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(autouse=True)
def first_model(db: None) -> None:
    ensure_first_model()


def answer_to_the_later(first: Callable[[], object], second: Callable[[], Any]) -> HttpResponse:
    """Return the response to `second`. `first` is not committed until `second` has passed its check and waits."""
    answers: list[HttpResponse] = []

    def send() -> None:
        try:
            answers.append(second())
        finally:
            connection.close()

    later = threading.Thread(target=send)
    try:
        with transaction.atomic():
            first()
            later.start()
            while later.is_alive() and not somebody_waits():
                later.join(0.02)
            assert later.is_alive(), "it did not wait"
    finally:
        later.join()
    return answers[0]


def test_creating_an_agent_with_a_name_taken_meanwhile_returns_409(
    admin_user: Any, api_client: Callable[..., Client]
) -> None:
    client = api_client(admin_user, ("chat", "read", "admin"))
    refused = answer_to_the_later(
        lambda: Agent.objects.create(name="Pirate"), lambda: make(client, for_everyone=True)
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "name_taken")  # type: ignore[attr-defined]


def test_renaming_an_agent_to_a_name_taken_meanwhile_returns_409(
    alice: Any, api_client: Callable[..., Client]
) -> None:
    client = api_client(alice, ("chat", "read"))
    address = f"/api/v1/agents/{make(client).json()['id']}"
    refused = answer_to_the_later(
        lambda: Agent.objects.create(owner=alice, name="Parrot"),
        lambda: client.patch(address, {"name": "Parrot"}, content_type="application/json"),
    )
    assert refused.status_code == 409
    assert client.get(address).json()["name"] == "Pirate"


def test_the_form_of_an_agent_reports_a_name_taken_meanwhile(admin_client: Client) -> None:
    refused = answer_to_the_later(
        lambda: Agent.objects.create(name="Pirate"),
        lambda: admin_client.post("/admin/chatapp/agent/add/", FORM),
    )
    assert refused.status_code == 200
    assert "There is an agent of this name already." in refused.content.decode()


def test_an_import_in_the_panel_reports_a_name_taken_meanwhile(admin_client: Client) -> None:
    refused = answer_to_the_later(
        lambda: Agent.objects.create(name="Pirate"),
        lambda: admin_client.post("/admin/chatapp/agent/import/", {"yaml": "name: Pirate"}),
    )
    assert "There is an agent of this name already." in refused.content.decode()


def test_the_form_of_a_server_reports_a_name_taken_meanwhile(admin_client: Client) -> None:
    refused = answer_to_the_later(
        lambda: McpServer.objects.create(name="test", url="http://203.0.113.8/mcp"),
        lambda: admin_client.post("/admin/chatapp/mcpserver/add/", form_of()),
    )
    assert refused.status_code == 200
    assert "already exists" in refused.content.decode()
