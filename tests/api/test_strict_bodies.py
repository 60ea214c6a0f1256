"""Bodies are validated as described: a string is not a number, and null is accepted only if it is described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import BaseModel, ValidationError

from chatapp.accounts.models import User
from chatapp.providers.models import ModelConfig
from chatapp.realtime.frames import ClientFrameAdapter
from chatapp.runs.models import Run
from memory.strict_types import StrictTypes
from tests.api.description import describe_api
from tests.api.program import Program
from tests.memory_store.rows import NOW, new_conversation, say

CONVERSATIONS = "/api/v1/conversations"


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (CONVERSATIONS, "temporary", "true"),
        (CONVERSATIONS, "temporary", 1),
        (CONVERSATIONS, "context_policy", {"keep_recent": "5"}),
        ("/api/v1/agents", "context_policy", {"trigger": "0.5"}),
        (f"{CONVERSATIONS}/ID/share", "expires_at", 1_900_000_000),
        ("/api/v1/agents", "temperature", "0.5"),
        (f"{CONVERSATIONS}/ID/read", "message_count", "1"),
        (f"{CONVERSATIONS}/ID/read", "message_count", True),
        (f"{CONVERSATIONS}/ID/messages", "stream", "no"),
        (f"{CONVERSATIONS}/ID/inject", "stream", False),
        (f"{CONVERSATIONS}/ID/inject", "model", "Test"),
        (f"{CONVERSATIONS}/ID/inject", "mode", "plan"),
        ("/v1/chat/completions", "temperature", "0.5"),
        ("/v1/chat/completions", "stream", 0),
        ("/v1/chat/completions", "n", True),
        ("/v1/chat/completions", "logit_bias", {"50256": "-100"}),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_field(
    alice_client: Client, model: ModelConfig, path: str, field: str, value: Any
) -> None:
    made = alice_client.post(CONVERSATIONS, {}, "application/json").json()["id"]
    body = {"content": "Hello"} if path.endswith(("messages", "inject")) else {}
    body = {"name": "Strict"} if path.endswith("agents") else body
    body = {"messages": [{"role": "user", "content": "Hello"}]} if path.startswith("/v1") else body
    answer = alice_client.post(path.replace("ID", made), {**body, field: value}, "application/json")
    told = answer.json()["error"]
    assert answer.status_code in (400, 422), answer.content
    assert field == (told.get("param") or told["details"][0]["field"])


VALUES_OF_ALL_TYPES: tuple[Any, ...] = (
    *("5", "true", "1900000000", "20000", "2026-11-23", "10:00"),
    *(5, 0, 1.5, 1_900_000_000, 1_699_920_000, True, False),
    *([], {}, ["5"], [5], [True], {"a": "5"}),
)


def bodies(of: type[BaseModel] = StrictTypes) -> Iterator[type[BaseModel]]:
    for body in of.__subclasses__():
        yield body
        yield from bodies(body)


def test_no_body_accepts_a_value_that_its_description_excludes() -> None:
    taken = []
    for body in set(bodies()):
        schema = describe(body)
        for name, field in schema.get("properties", {}).items():
            if name == "context_policy":  # validated for the level that it is written at
                continue
            described = Draft202012Validator(
                {**field, "$defs": schema.get("$defs", {})}, format_checker=FormatChecker()
            )
            others = [value for value in VALUES_OF_ALL_TYPES if not described.is_valid(value)]
            taken += [(body.__name__, name, value) for value in others if not is_refused(body, name, value)]
    assert taken == []


def describe(body: type[BaseModel]) -> dict[str, Any]:
    body.model_rebuild()
    return body.model_json_schema()


def is_refused(body: type[BaseModel], name: str, value: Any) -> bool:
    try:
        body.model_validate({name: value})
    except ValidationError as error:
        return any(each["loc"][:1] == (name,) for each in error.errors())
    return False


def test_numbers_are_described_with_one_lower_bound_only() -> None:
    found: list[dict[str, Any]] = []
    json.loads(json.dumps(describe_api()), object_hook=lambda each: found.append(each) or each)
    bounded = [each for each in found if {"minimum", "exclusiveMinimum"} & each.keys()]
    assert {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400} in bounded
    assert not [each for each in bounded if {"minimum", "exclusiveMinimum"} <= each.keys()]


def test_null_is_described_exactly_where_it_is_accepted(alice_client: Client) -> None:
    made = alice_client.post(CONVERSATIONS, {}, "application/json").json()["id"]
    fields = describe_api()["components"]["schemas"]["ConversationChanges"]["properties"]
    described = {name for name, field in fields.items() if {"type": "null"} in field.get("anyOf", ())}
    accepted = set()
    for name in fields:
        answer = alice_client.patch(f"{CONVERSATIONS}/{made}", {name: None}, "application/json")
        if answer.status_code == 200:
            accepted.add(name)
        else:
            assert [each["field"] for each in answer.json()["error"]["details"]] == [name]
    assert described == accepted
    assert {"agent", "folder"} <= accepted
    assert "title" not in accepted


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 200), (" ", 200), ("{}", 200), ('{"x": 1}', 422), ("[1]", 422), ("{", 400)],
)
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_an_operation_without_a_body_refuses_fields(
    alice: User, alice_client: Client, kind: str, body: str, status: int
) -> None:
    run = run_that_ended(alice)
    answer = alice_client.generic("POST", f"/api/v1/runs/{run.pk}/stop", body, content_type=kind)
    assert answer.status_code == status, answer.content
    if status == 422:
        assert answer.json()["error"]["details"][0]["field"] == ("x" if "x" in body else "body")


def test_permissions_are_checked_before_the_fields(alice: User, api_client: Any) -> None:
    address = f"/api/v1/runs/{uuid4()}/stop"
    for client, status in (
        (Client(headers={"Authorization": "Bearer wrong"}), 401),
        (api_client(alice, ["read"]), 403),
    ):
        assert client.post(address, '{"x": 1}', content_type="application/json").status_code == status


def test_a_form_accepts_each_described_field_once(alice_client: Client) -> None:
    for more, field in (
        ({"x": "1"}, "x"),
        ({"more": upload()}, "more"),
        ({"file": [upload(), upload()]}, "file"),
    ):
        answer = alice_client.post("/api/v1/files", {"file": upload(), **more})
        assert answer.status_code == 422, answer.content
        assert answer.json()["error"]["details"][0]["field"] == field
    assert alice_client.post("/api/v1/files", {"file": upload()}).status_code == 201


def upload() -> SimpleUploadedFile:
    return SimpleUploadedFile("notes.txt", b"Some words.")


def run_that_ended(user: User) -> Run:
    conversation = new_conversation(user)
    say(conversation, "Hello", "Hi!")
    question, answer = conversation.messages.order_by("position")
    return Run.objects.create(
        conversation=conversation,
        user=user,
        question=question,
        answer=answer,
        status=Run.Status.COMPLETE,
        created_at=NOW,
    )


@pytest.mark.parametrize("path", ["memory/profile", "memory/days/2026-11-21"])
async def test_an_empty_markdown_body_clears_the_document(
    alice: User, alice_program: Program, path: str
) -> None:
    written = {"headers": {"content-type": "text/markdown"}}
    await alice_program.call("PUT", path, body=b"## 10:00\n\nKeeps bees.\n", **written)
    answer = await alice_program.call("PUT", path, body=b"", **written)
    assert answer.status_code == 200, answer.content
    assert "bees" not in answer.json()["markdown"]
    assert (await alice_program.call("PUT", path, body=b"")).status_code == 422  # as JSON


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        ({"type": "subscribe", "conversation_id": "1", "after_seq": "5"}, "after_seq"),
        ({"type": "message.sync", "message_id": "1", "length": True}, "length"),
        ({"type": "ping", "pong": 1}, "pong"),
    ],
)
def test_an_invalid_frame_is_refused_with_its_field(frame: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ClientFrameAdapter.validate_json(json.dumps(frame))
    assert refused.value.errors()[0]["loc"][-1] == field
