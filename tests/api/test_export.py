"""The zip with all data of one user: all versions of messages, files, memory, agents, usage; nothing of others."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.files.offloads import ConversationOffloads
from chatapp.operations.database.threads import in_database
from chatapp.operations.models import AuditEvent
from chatapp.providers.models import ModelConfig
from memory.types import ToolResultPart
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.files.test_files_api import upload
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

Clients = Callable[..., Client]


async def download(program: Program) -> zipfile.ZipFile:
    answer = await program.get("export")
    assert answer.status_code == 200, answer.content
    assert answer.headers["content-type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive


def conversations_in(archive: zipfile.ZipFile) -> dict[str, Any]:
    names = [name for name in archive.namelist() if name.startswith("conversations/")]
    return {shape["id"]: shape for shape in (json.loads(archive.read(name)) for name in names)}


def one(archive: zipfile.ZipFile, folder: str) -> bytes:
    [name] = [name for name in archive.namelist() if name.startswith(folder)]
    return archive.read(name)


async def test_an_export_contains_all_data_of_the_user_and_none_of_others(
    alice_program: Program,
    charlie_program: Program,
    alice_client: Client,
    model: ModelConfig,
    model_server: ModelServer,
) -> None:
    model_server.script(says("First answer"), says("Second answer"))
    picture = await in_database(upload)(alice_client, name="../my cat.png")
    async with running_service():
        for program, words in ((alice_program, "Alice's orchard"), (charlie_program, "Charlie's secret")):
            await program.post("memory/entries", text=words, day="2026-03-05")
            await program.call("PUT", "memory/profile", body={"markdown": f"- {words}"})
            await program.post(
                "conversations/import", title=words, messages=[{"role": "user", "content": words}]
            )
        told = await new_conversation(alice_program)
        await send(alice_program, told, "What grows?", attachments=[picture.json()["id"]])
        asked = (await alice_program.get(f"conversations/{told}/messages")).json()["items"][0]
        edit = {"content": "What grows there?"}
        await alice_program.patch(f"conversations/{told}/messages/{asked['id']}", **edit)
        entry = (await alice_program.get("memory/days/2026-03-05")).json()["entries"][0]
        await alice_program.patch(f"memory/entries/{entry['id']}", text="Alice's garden")
        await alice_program.post("agents", name="Gardener", system_prompt="You know plants.")
        large = ToolResultPart("1", "http_fetch", "A long page about plums.")
        await in_database(ConversationOffloads().offload_tool_result)(told, large)
        archive = await download(alice_program)
        other = await download(charlie_program)
    assert await AuditEvent.objects.filter(kind="exported").acount() == 2

    assert json.loads(archive.read("account.json"))["email"] == "alice@example.com"
    shapes = conversations_in(archive)
    assert {shape["title"] for shape in shapes.values()} >= {"Alice's orchard"}
    assert [item["content"] for item in shapes[told]["messages"]] == ["What grows there?", "Second answer"]
    assert "What grows?" in str(shapes[told]["other_versions"][0])
    assert shapes[told]["other_versions"][1]["content"] == "First answer"
    first, second = json.loads(one(archive, f"traces/{told}"))
    assert (first["status"], second["conversation_id"]) == ("complete", told)
    assert [len(run["iterations"]) for run in (first, second)] == [1, 1]
    assert not [name for name in other.namelist() if told in name]
    assert one(archive, "files/").startswith(b"\x89PNG")
    assert b"plums" in one(archive, f"offloaded/{told}/")
    assert "Alice's garden" in archive.read("memory/2026-03-05.md").decode()
    [kept] = json.loads(archive.read("memory/entries.json"))
    assert [kept["text"], kept["earlier"][0]["text"]] == ["Alice's garden", "Alice's orchard"]
    assert archive.read("memory/MEMORY.md").decode() == "- Alice's orchard\n"
    assert b"You know plants." in one(archive, "agents/")
    calls = list(csv.DictReader(io.StringIO(archive.read("usage.csv").decode())))
    assert [call["purpose"] for call in calls if call["purpose"] == "chat"] == ["chat", "chat"]

    assert all(not name.startswith("/") and ".." not in name for name in archive.namelist())
    assert not any(b"Charlie" in archive.read(name) for name in archive.namelist())
    assert not any(b"Alice" in other.read(name) for name in other.namelist())


async def test_an_exported_conversation_can_be_imported_again(alice_program: Program) -> None:
    said = [{"role": ("user", "assistant")[at % 2], "content": f"Zeile {at} äöü"} for at in range(1_203)]
    async with running_service():
        await alice_program.post("conversations/import", messages=said, title="Über uns")
        [shape] = conversations_in(await download(alice_program)).values()
        again = await alice_program.post("conversations/import", title="Again", messages=shape["messages"])
        assert again.json()["message_count"] == 1_203
        shapes = conversations_in(await download(alice_program)).values()
    assert [[item["content"] for item in shape["messages"]] for shape in shapes] == [
        [item["content"] for item in said]
    ] * 2


async def test_an_empty_account_can_be_exported(alice_program: Program) -> None:
    archive = await download(alice_program)
    assert json.loads(archive.read("memory/entries.json")) == []
    assert conversations_in(archive) == {}


@pytest.mark.parametrize(
    ("scopes", "status"),
    [(["read"], 200), (["chat", "memory"], 200), (["chat"], 403), (["memory"], 403), (["admin"], 403)],
    ids=str,
)
def test_an_export_needs_a_token_that_may_read_everything(
    alice: User, api_client: Clients, scopes: list[str], status: int
) -> None:
    assert api_client(alice, scopes).get("/api/v1/export").status_code == status


def test_an_export_needs_authentication(client: Client) -> None:
    assert client.get("/api/v1/export").status_code == 401
