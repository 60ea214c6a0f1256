"""The prompt library: a user's own prompts, and those that operators offer to all users."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from chatapp.accounts.models import User
from chatapp.features.prompts.actions import MAX_PROMPTS, create_prompt
from chatapp.features.prompts.models import Prompt
from chatapp.features.prompts.selectors import own_prompts
from chatapp.forgetting.accounts import delete_account
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from chatapp.operations.errors import Conflict
from tests.api.program import Program
from tests.blocking import beside

API = "/api/v1"


def call(client: Client, method: str, path: str, **fields: Any) -> Any:
    return client.generic(method, f"{API}/{path}", json.dumps(fields), content_type="application/json")


def make(client: Client, name: str, text: str = "Translate into French:") -> str:
    answer = call(client, "POST", "prompts", name=name, text=text)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def names(client: Client) -> list[tuple[str, bool]]:
    return [(row["name"], row["is_mine"]) for row in client.get(f"{API}/prompts").json()["items"]]


def test_a_prompt_can_be_read_changed_and_deleted_by_its_owner_only(
    alice_client: Client, charlie_client: Client
) -> None:
    french = make(alice_client, "french")
    assert call(alice_client, "POST", "prompts", name="french", text="x").status_code == 409
    make(charlie_client, "french")
    changed = call(alice_client, "PATCH", f"prompts/{french}", about="Into French").json()
    assert (changed["name"], changed["about"]) == ("french", "Into French")
    for method in ("GET", "PATCH", "DELETE"):
        assert call(charlie_client, method, f"prompts/{french}").status_code == 404
    assert call(alice_client, "DELETE", f"prompts/{french}").status_code == 204
    assert names(alice_client) == []
    assert names(charlie_client) == [("french", True)]


def test_all_users_can_read_but_not_change_prompts_of_operators(
    alice_client: Client, charlie_client: Client, admin_client: Client
) -> None:
    make(alice_client, "mine")
    page = "/admin/chatapp/prompt/"
    form = {"name": "review", "about": "Reviews a text", "text": "Review this:"}
    assert admin_client.post(f"{page}add/", form).status_code == 302
    assert b"already" in admin_client.post(f"{page}add/", form).content
    assert b"is a command" in admin_client.post(f"{page}add/", {**form, "name": "memory"}).content
    offered = Prompt.objects.get(owner=None)
    assert b"mine" not in admin_client.get(page).content
    own = Prompt.objects.exclude(owner=None).get()
    assert admin_client.get(f"{page}{own.pk}/change/").status_code == 302
    assert names(charlie_client) == [("review", False)]
    assert call(alice_client, "GET", f"prompts/{offered.pk}").json()["text"] == "Review this:"
    for method in ("PATCH", "DELETE"):
        assert call(alice_client, method, f"prompts/{offered.pk}").status_code == 404


@pytest.mark.postgres  # SQLite has one writer at a time
@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_cannot_exceed_the_number_of_prompts(alice: User) -> None:
    Prompt.objects.bulk_create(
        Prompt(owner=alice, name=str(number), text="x") for number in range(MAX_PROMPTS - 1)
    )

    def create(name: str) -> None:
        with suppress(Conflict):
            create_prompt(user=alice, name=name, text="x")

    with beside(lambda: create("other"), lambda: create("last")):
        pass
    assert own_prompts(alice).count() == MAX_PROMPTS


@pytest.mark.parametrize("name", ["", "With Spaces", "/french", "help", "x" * 41, "Ä"])
def test_an_invalid_prompt_name_is_refused(alice_client: Client, name: str) -> None:
    assert call(alice_client, "POST", "prompts", name=name, text="x").status_code == 422


async def test_prompts_are_exported_and_deleted_with_the_rest_of_an_account(
    alice: User, alice_client: Client, alice_program: Program, bob: User
) -> None:
    await sync_to_async(make)(alice_client, "french")
    archive = zipfile.ZipFile(io.BytesIO((await alice_program.get("export")).content))
    assert [row["name"] for row in json.loads(archive.read("prompts.json"))] == ["french"]
    await sync_to_async(forget_all)(alice, now=clock.now())
    assert not await Prompt.objects.aexists()
    await Prompt.objects.acreate(owner=bob, name="mine", text="x")
    await sync_to_async(delete_account)(bob, now=clock.now())
    assert not await Prompt.objects.aexists()
