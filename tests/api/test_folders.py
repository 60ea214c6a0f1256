"""Folders are created, changed and deleted; their conversations, files, instructions and agent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models import Q
from django.test import Client

from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.context.tools.registry import BUILT_IN
from chatapp.conversations.folders.actions import MAX_FOLDERS, create_folder
from chatapp.conversations.models import Conversation, Folder
from chatapp.files.actions import delete_unused_attachments
from chatapp.files.attachments import store_upload
from chatapp.files.models import Attachment
from chatapp.forgetting.services import forget_all
from chatapp.operations import clock
from chatapp.operations.errors import Conflict
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.blocking import beside
from tests.servers.openai_server import ModelServer

API = "/api/v1"


def call(client: Client, method: str, path: str, **fields: Any) -> Any:
    return client.generic(method, f"{API}/{path}", json.dumps(fields), content_type="application/json")


def make(client: Client, name: str = "Lisbon", **fields: Any) -> str:
    answer = call(client, "POST", "folders", name=name, **fields)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def listed(client: Client, **query: Any) -> list[str]:
    answer = client.get(f"{API}/conversations", query)
    assert answer.status_code == 200, answer.content
    return [row["title"] for row in answer.json()["items"]]


def test_a_folder_is_created_changed_and_deleted_but_its_conversations_stay(
    alice_client: Client, charlie_client: Client
) -> None:
    lisbon = make(alice_client, " Lisbon ", instructions="Answer in Portuguese.")
    make(alice_client, "alfama")
    found = alice_client.get(f"{API}/folders").json()["items"]
    assert [row["name"] for row in found] == ["alfama", "Lisbon"]
    assert found[1]["instructions"] == "Answer in Portuguese."
    assert charlie_client.get(f"{API}/folders").json()["items"] == []
    assert call(alice_client, "POST", "folders", name="Lisbon").status_code == 409
    assert call(alice_client, "POST", "folders", name=" ").status_code == 422
    assert call(alice_client, "PATCH", f"folders/{lisbon}", name="alfama").status_code == 409
    assert call(alice_client, "PATCH", f"folders/{lisbon}", name="Porto").json()["name"] == "Porto"

    call(alice_client, "POST", "conversations", title="In it", folder=lisbon)
    assert call(alice_client, "DELETE", f"folders/{lisbon}").status_code == 204
    assert listed(alice_client, folder="none") == ["In it"]
    assert call(alice_client, "GET", f"folders/{lisbon}").status_code == 404


def test_conversations_move_into_and_out_of_folders_and_are_listed_by_folder(
    alice_client: Client, charlie_client: Client
) -> None:
    lisbon = make(alice_client)
    inside = call(alice_client, "POST", "conversations", title="Inside", folder=lisbon).json()
    outside = call(alice_client, "POST", "conversations", title="Outside").json()
    assert (inside["folder"], outside["folder"]) == (lisbon, None)
    assert listed(alice_client, folder=lisbon) == ["Inside"]
    assert listed(alice_client, folder="none") == ["Outside"]
    assert set(listed(alice_client)) == {"Inside", "Outside"}
    moved = call(alice_client, "PATCH", f"conversations/{outside['id']}", folder=lisbon)
    assert moved.json()["folder"] == lisbon
    assert call(alice_client, "PATCH", f"conversations/{inside['id']}", folder=None).json()["folder"] is None
    assert listed(alice_client, folder=lisbon) == ["Outside"]

    theirs = make(charlie_client, "Mine")
    assert call(alice_client, "PATCH", f"conversations/{outside['id']}", folder=theirs).status_code == 404
    assert call(alice_client, "POST", "conversations", folder=theirs).status_code == 404
    assert alice_client.get(f"{API}/conversations", {"folder": theirs}).status_code == 404


def test_conversations_started_in_a_folder_get_its_agent(
    alice: User, charlie: User, alice_client: Client
) -> None:
    Agent.objects.create(name="Guide", owner=alice)
    Agent.objects.create(name="Theirs", owner=charlie)
    assert call(alice_client, "POST", "folders", name="No", agent="Theirs").status_code == 404
    lisbon = make(alice_client, agent="Guide")
    begun = call(alice_client, "POST", "conversations", folder=lisbon).json()
    assert begun["agent"] == "Guide"
    begun = call(alice_client, "POST", "conversations", folder=lisbon, agent="default").json()
    assert begun["agent"] is None
    assert call(alice_client, "PATCH", f"folders/{lisbon}", agent=None).json()["agent"] is None


@pytest.mark.mechanism("ours.folder")
async def test_the_instructions_of_a_folder_follow_those_of_the_agent_in_the_context(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        folder = await alice_program.post("folders", name="Lisbon", instructions="Answer in Portuguese.")
        inside = await new_conversation(alice_program, folder=folder.json()["id"])
        outside = await new_conversation(alice_program)
        seen = await alice_program.post(f"conversations/{inside}/context", query="Hello")
        assert "Answer in Portuguese." in seen.json()["messages"][0]["content"]
        for conversation in (inside, outside):
            assert (await send(alice_program, conversation)).status_code == 200
    asked = [request for request in model_server.requests if request.messages]
    prompts = [request.messages[0]["content"] for request in asked]
    assert ["Answer in Portuguese." in prompt for prompt in prompts] == [True, False]
    assert prompts[0].replace("\n\nAnswer in Portuguese.", "") == prompts[1]


def test_forgetting_everything_deletes_folders(alice: User, bob: User, alice_client: Client) -> None:
    folder = make(alice_client, instructions="I live in Lisbon.")
    call(alice_client, "POST", "conversations", folder=folder)
    Folder.objects.create(user=bob, name="Mine", created_at=clock.now())
    forget_all(alice, now=clock.now())
    assert [row.user for row in Folder.objects.all()] == [bob]
    assert not Conversation.objects.filter(user=alice).exists()


async def test_files_of_a_folder_can_be_read_in_its_conversations_only_and_are_not_cleaned_up(
    alice: User, charlie: User, alice_program: Program, charlie_program: Program, model: ModelConfig
) -> None:
    plan = await sync_to_async(store_upload)(user=alice, name="plan.txt", content=b"Meet at the ferry.")
    path = await alice_program.post("folders", name="Lisbon")
    folder = path.json()["id"]
    inside = await new_conversation(alice_program, folder=folder)
    outside = await new_conversation(alice_program)
    address = f"folders/{folder}/files/{plan.pk}"
    for _ in ("at first", "and again"):
        assert (await alice_program.call("PUT", address)).status_code == 204
    listed = (await alice_program.get(f"folders/{folder}/files")).json()["items"]
    assert [file["name"] for file in listed] == ["plan.txt"]
    theirs = (await charlie_program.post("folders", name="Mine")).json()["id"]
    for stolen in (address, f"folders/{theirs}/files/{plan.pk}"):
        assert (await charlie_program.call("PUT", stolen)).status_code == 404

    seen = await alice_program.post(f"conversations/{inside}/context", query="Hello")
    assert f"{plan.pk}: plan.txt" in seen.json()["messages"][0]["content"]
    asking = {place: ToolCaller(str(alice.pk), place, "") for place in (inside, outside)}
    found = await BUILT_IN["files_read"].call({"file_id": str(plan.pk)}, asking[inside])
    assert "Meet at the ferry." in found.text
    with pytest.raises(ToolFailure):
        await BUILT_IN["files_read"].call({"file_id": str(plan.pk)}, asking[outside])
    await sync_to_async(delete_unused_attachments)(Q(pk=plan.pk))
    assert await Attachment.objects.filter(pk=plan.pk).aexists()
    assert (await alice_program.delete(address)).status_code == 204
    await sync_to_async(delete_unused_attachments)(Q(pk=plan.pk))
    assert not await Attachment.objects.filter(pk=plan.pk).aexists()


@pytest.mark.postgres  # SQLite has one writer at a time
@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_cannot_exceed_the_number_of_folders(alice: User) -> None:
    now = clock.now()
    Folder.objects.bulk_create(
        Folder(user=alice, name=str(number), created_at=now) for number in range(MAX_FOLDERS - 1)
    )

    def create(name: str) -> None:
        with suppress(Conflict):
            create_folder(user=alice, name=name, now=now)

    with beside(lambda: create("other"), lambda: create("last")):
        pass
    assert Folder.objects.filter(user=alice).count() == MAX_FOLDERS
