"""Every POST that creates something creates it once per `Idempotency-Key`, and returns its location."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from pytest_django.fixtures import Settings

from chatapp.accounts.idempotency_keys import RETENTION, delete_old_keys
from chatapp.accounts.models import ApiToken, IdempotencyKey, User
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.urls import ROUTERS
from tests.api.conftest import Clients
from tests.api.everything import one_of_everything
from tests.api.program import Answer, Program
from tests.api.running import new_conversation, read_all, running_service, send
from tests.api.test_account import signed_in

KEY = {"idempotency-key": "k1"}
OF_MESSAGES = {"/conversations/{conversation_id}/messages", "/conversations/{conversation_id}/inject"}
"""Their key is that of the message: `test_idempotency.py`."""
MAKE_NOTHING = {
    "/admin/deployment",  # does not create existing rows again
    "/conversations/bulk",
    "/conversations/{conversation_id}/context",
    "/conversations/{conversation_id}/compactions/{compaction_id}/undo",
    "/conversations/{conversation_id}/compactions/{compaction_id}/redo",
    "/conversations/{conversation_id}/messages/{message_id}/show",
    "/conversations/{conversation_id}/read",
    "/conversations/{conversation_id}/trash",
    "/trash/{conversation_id}/restore",
    "/runs/{run_id}/stop",
    "/runs/{run_id}/tools/{call_id}/approve",
    "/runs/{run_id}/tools/{call_id}/deny",
    "/imports/{import_id}/parts",  # each part has an offset
    "/imports/{import_id}/retry",
    "/memory/forget",
    "/memory/forget/confirm",
    "/memory/review/{entry_id}/approve",
    "/memory/review/{entry_id}/reject",
    "/memory/entries/{entry_id}/revert",
    "/memory/profile/versions/{version}/revert",
    "/memory/profile/consolidate",
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
}
BODIES: dict[str, dict[str, Any]] = {
    "/agents": {"name": "Made"},
    "/agents/import": {"yaml": "name: Imported"},
    "/conversations/import": {"messages": [{"role": "user", "content": "Hello"}]},
    "/imports/uploads": {"file_name": "chats.json", "size_bytes": 10},
    "/webhooks": {"url": "https://example.com/hook"},
    "/memory/forget/propose": {"query": "parrots"},
    "/memory/entries": {"text": "A parrot."},
    "/conversations": {"title": "Made"},
    "/folders": {"name": "Made"},
    "/prompts": {"name": "made", "text": "Made"},
}
FORM = (
    b'--%(b)s\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\n%(text)s\r\n--%(b)s--\r\n"
)


def posts() -> dict[str, Any]:
    """Return the declaration by `creates`, or None, by path."""
    return {
        path: getattr(operation.view_func, "creation", None)
        for router in ROUTERS
        for path, view in router.path_operations.items()
        for operation in view.operations
        if "POST" in operation.methods
    }


CREATING = [path for path, creation in posts().items() if creation is not None]
IN_A_TEST_OF_THEIR_OWN = {
    "/tokens",
    "/files",
    "/imports",
    "/conversations/{conversation_id}/compact",
    "/conversations/{conversation_id}/queue/send",  # tests/api/test_ways_on.py
}


def counts() -> dict[str, int]:
    kept = {"IdempotencyKey", "Event", "Session"}
    return {
        model.__name__: model._base_manager.count()
        for model in apps.get_app_config("chatapp").get_models()
        if model.__name__ not in kept
    }


def test_each_post_is_declared_to_create_something_or_listed_as_creating_nothing() -> None:
    undeclared = posts().keys() - set(CREATING) - OF_MESSAGES - MAKE_NOTHING
    assert not undeclared, (
        f"Say `@creates(…)` of {undeclared}, or list them here with those that make nothing."
    )


def test_each_201_response_is_declared_with_a_location() -> None:
    for router in ROUTERS:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                if 201 in operation.response_models:
                    assert path in CREATING, path
                    assert posts()[path].location, path


async def ask_twice(program: Program, path: str, body: Any = None) -> tuple[Answer, Answer]:
    first = await program.call("POST", path, body=body or {}, headers=KEY)
    assert first.status_code < 300, first.content
    before = await sync_to_async(counts)()
    again = await program.call("POST", path, body=body or {}, headers=KEY)
    assert await sync_to_async(counts)() == before
    return first, again


@pytest.mark.mechanism("contract.once")
@pytest.mark.parametrize("path", sorted(set(CREATING) - IN_A_TEST_OF_THEIR_OWN - {"/admin/invitations"}))
async def test_a_repeated_post_creates_nothing_and_returns_the_first_result(
    path: str, alice: User, alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        ids = await sync_to_async(one_of_everything)(alice)
        if path.endswith("/share"):
            await alice_program.delete(path.format(**ids).removeprefix("/"))
        if path.startswith(("/runs", "/conversations/{conversation_id}/messages")):
            ids = await unfinished(alice_program)
        if path.endswith("/context/clear"):
            await sync_to_async(apps.get_model("chatapp", "Compaction").objects.all().delete)()
        first, again = await ask_twice(alice_program, path.format(**ids).removeprefix("/"), BODIES.get(path))
        assert again.status_code == first.status_code
        hidden = {"secret", "notes"}
        told = {name: value for name, value in first.json().items() if name not in hidden}
        assert {name: again.json()[name] for name in told} == told
        assert again.headers.get("location") == first.headers.get("location")
        if first.status_code == 201:
            assert first.headers["location"].startswith("/api/v1/")
            found = await alice_program.get(first.headers["location"])
            assert found.status_code == (405 if path == "/webhooks" else 200)


async def unfinished(program: Program) -> dict[str, str]:
    """Return the ids of a stopped answer, which can be continued and regenerated."""
    conversation = await new_conversation(program)
    answer = (await send(program, conversation)).json()
    message, run = answer["message"]["id"], answer["run_id"]
    models = apps.get_model("chatapp", "Message"), apps.get_model("chatapp", "Run")
    for row, row_id in zip(models, (message, run), strict=True):
        await row.objects.filter(pk=row_id).aupdate(status="stopped")
    return {"conversation_id": conversation, "message_id": message, "run_id": run}


async def test_a_repeated_stream_reports_the_same_run(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        ids = await unfinished(alice_program)
        path = f"conversations/{ids['conversation_id']}/messages/{ids['message_id']}/regenerate"
        streams = [await read_all(await alice_program.post(path, headers=KEY, stream=True)) for _ in range(2)]
        ends = [events[-1] for events in streams]
        assert [event.type for event in ends] == ["run.finished"] * 2
        assert ends[0].data == ends[1].data
        assert "run.started" in {event.type for event in streams[1]}


async def test_a_summary_is_queued_once_per_key(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        said = [{"role": "user", "content": f"Order QX-{n:05d} matters. " * 20} for n in range(60)]
        made = await alice_program.post("conversations/import", messages=said)
        first, again = await ask_twice(alice_program, f"conversations/{made.json()['id']}/compact")
        assert again.json()["id"] == first.json()["id"]


async def upload(program: Program, text: bytes, boundary: bytes, path: str = "files") -> Answer:
    headers = {"content-type": f"multipart/form-data; boundary={boundary.decode()}", **KEY}
    body = FORM % {b"b": boundary, b"text": text}
    return await program.call("POST", path, body=body, headers=headers)


async def test_an_upload_is_compared_by_its_content_not_by_its_form(alice_program: Program) -> None:
    first, again = (
        await upload(alice_program, b"Hello", b"one"),
        await upload(alice_program, b"Hello", b"two"),
    )
    assert (first.status_code, first.json()) == (201, again.json())
    assert first.headers["location"] == again.headers["location"] == first.json()["url"]
    other = await upload(alice_program, b"Other", b"one")
    assert (other.status_code, other.error["code"]) == (422, "idempotency_mismatch")


async def test_an_export_is_imported_once_per_key(alice_program: Program) -> None:
    first, again = [await upload(alice_program, b"[]", each, "imports") for each in (b"one", b"two")]
    assert (first.status_code, again.status_code) == (202, 202), first.content
    assert first.json()["id"] == again.json()["id"]


def test_a_repeated_token_request_shows_no_secret(alice: User) -> None:
    client = signed_in(alice)
    fields: dict[str, Any] = {"content_type": "application/json", "headers": {"Idempotency-Key": "k1"}}
    first, again = (client.post("/api/v1/tokens", {"scopes": ["chat"]}, **fields) for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert again.json() == {**first.json(), "token": None}
    assert first["Location"] == again["Location"] == f"/api/v1/tokens/{first.json()['id']}"
    assert ApiToken.objects.filter(user=alice).count() == 1


def test_a_repeated_invitation_shows_no_link(
    admin_user: User, api_client: Clients, settings: Settings
) -> None:
    settings.SIGNUP = "invite"
    client = api_client(admin_user)
    fields: dict[str, Any] = {"content_type": "application/json", "headers": {"Idempotency-Key": "k1"}}
    path = "/api/v1/admin/invitations"
    first, again = (client.post(path, {"email": "erin@example.com"}, **fields) for _ in "ab")
    assert first.status_code == again.status_code == 201
    assert first.json()["link"]
    assert again.json() == {**first.json(), "link": None}


@pytest.mark.parametrize(
    ("path", "body"),
    [("conversations", {"title": "Once"}), ("folders", {"name": "Once"}), ("agents", {"name": "Once"})],
)
async def test_concurrent_requests_with_one_key_create_one_row(
    path: str, body: dict[str, str], alice_program: Program, model: ModelConfig
) -> None:
    before = len((await alice_program.get(path)).json()["items"])
    answers = await asyncio.gather(*(alice_program.post(path, headers=KEY, **body) for _ in range(5)))
    assert [answer.status_code for answer in answers] == [201] * 5, answers[0].content
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await alice_program.get(path)).json()["items"]) == before + 1


async def test_concurrent_regenerations_with_one_key_start_one_run(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        ids = await unfinished(alice_program)
        path = f"conversations/{ids['conversation_id']}/messages/{ids['message_id']}/regenerate"
        headers = {**KEY, "prefer": "respond-async"}
        answers = await asyncio.gather(*(alice_program.post(path, headers=headers) for _ in range(3)))
        assert [answer.status_code for answer in answers] == [202] * 3, answers[0].content
        assert len({answer.json()["run_id"] for answer in answers}) == 1


async def test_the_same_key_with_another_body_returns_422(alice_program: Program) -> None:
    await alice_program.post("conversations", headers=KEY, title="One")
    other = await alice_program.post("conversations", headers=KEY, title="Two")
    assert (other.status_code, other.error["code"]) == (422, "idempotency_mismatch")


async def test_a_key_belongs_to_its_user_and_address(
    alice_program: Program, charlie_program: Program
) -> None:
    of_alice = await alice_program.post("conversations", headers=KEY)
    of_charlie = await charlie_program.post("conversations", headers=KEY)
    assert of_alice.json()["id"] != of_charlie.json()["id"]
    assert (await alice_program.post("memory/entries", headers=KEY, text="A parrot.")).status_code == 201


async def test_a_key_can_be_used_again_after_a_failed_request(
    alice_program: Program, model: ModelConfig
) -> None:
    assert (await alice_program.post("agents", headers=KEY, name="")).status_code == 422
    assert (await alice_program.post("agents", headers=KEY, name="Made")).status_code == 201


async def test_a_deleted_row_is_not_created_again(alice_program: Program) -> None:
    made = await alice_program.post("conversations", headers=KEY)
    await alice_program.delete(f"conversations/{made.json()['id']}")
    assert (await alice_program.post("conversations", headers=KEY)).status_code == 404


async def test_a_key_is_kept_for_a_day(alice_program: Program) -> None:
    made = await alice_program.post("conversations", headers=KEY)
    await IdempotencyKey.objects.aupdate(created_at=clock.now() - RETENTION - timedelta(seconds=1))
    other = await alice_program.post("conversations", headers=KEY)
    assert made.json()["id"] != other.json()["id"]
    assert await IdempotencyKey.objects.acount() == 1
    await sync_to_async(delete_old_keys)(now=clock.now() + RETENTION)
    assert not await IdempotencyKey.objects.aexists()


@pytest.mark.parametrize("key", ["", "x" * 201])
async def test_an_empty_or_overlong_key_returns_422(alice_program: Program, key: str) -> None:
    answer = await alice_program.post("conversations", headers={"idempotency-key": key})
    assert (answer.status_code, answer.error["details"][0]["field"]) == (422, "Idempotency-Key")
