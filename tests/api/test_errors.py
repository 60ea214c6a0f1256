"""Every error has the same shape and the right status, and names the invalid field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.operations.http.errors import field_path
from tests.api import odd
from tests.api.description import describe_api, is_for_operators
from tests.api.everything import one_of_everything

CONVERSATIONS = "/api/v1/conversations"


def error_of(answer: object) -> dict[str, object]:
    body = answer.json()
    assert set(body) == {"error"}
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "details"}
    return body["error"]


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v2/me", "/api/", "/api/v1/", "/api/v1/me/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_returns_404_as_json(alice_client: Client, path: str, method: str) -> None:
    answer = getattr(alice_client, method)(path)
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"


def test_a_wrong_method_returns_405_and_lists_the_allowed_methods(alice_client: Client) -> None:
    answer = alice_client.delete("/api/v1/models")
    assert answer.status_code == 405
    assert answer["Allow"] == "GET, HEAD"
    assert error_of(answer)["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "nonsense",
        b"\xff\xfe",
        '{"title": NaN}',
        '{"title": 1e999}',
        "[" * 100_000,
        '{"title": "\xed\xa0\x80"}'.encode("latin-1"),
    ],
    ids=["open", "empty", "word", "bytes", "nan", "infinite", "deep", "surrogate bytes"],
)
def test_invalid_json_returns_400_and_a_missing_body_422(alice_client: Client, body: object) -> None:
    answer = alice_client.generic("PATCH", "/api/v1/me", body, content_type="application/json")
    assert answer.status_code == (422 if body == "" else 400)
    assert error_of(answer)["code"] == ("invalid" if body == "" else "malformed")


def test_invalid_values_return_422_with_their_paths(alice_client: Client) -> None:
    answer = alice_client.post(
        CONVERSATIONS, {"title": 5, "temporary": "perhaps"}, content_type="application/json"
    )
    assert answer.status_code == 422
    details = error_of(answer)["details"]
    assert {item["field"] for item in details} == {"title", "temporary"}
    assert all(item["message"] for item in details)


def bodies() -> Iterator[tuple[str, str]]:
    """Yield (method, path) of the operations with a JSON body. Leave out the import, which takes exported conversations
    unchanged, and the operations for operators, which reveal none of their fields to others."""
    schema: dict[str, Any] = describe_api()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            kinds = operation.get("requestBody", {}).get("content", {})
            is_strict = not path.endswith("conversations/import") and not is_for_operators(path)
            if "application/json" in kinds and is_strict:
                yield method, path


def test_unknown_fields_return_422_with_their_names(alice: User, alice_client: Client) -> None:
    ids = {**one_of_everything(alice), "day": "2026-11-21", "version": "1"}
    body = json.dumps({"colour": "red", "size": 2})
    strict = list(bodies())
    assert strict
    for method, path in strict:
        answer = alice_client.generic(
            method.upper(), path.format(**ids), body, content_type="application/json"
        )
        assert answer.status_code == 422, (method, path, answer.content)
        assert {"colour", "size"} <= {item["field"] for item in error_of(answer)["details"]}, (method, path)


def test_only_the_first_hundred_invalid_fields_are_reported(alice_client: Client) -> None:
    # Each error is compared with all others: 20,000 would block the process for a minute.
    body = {f"x{number}": 1 for number in range(300)}
    answer = alice_client.post(CONVERSATIONS, body, content_type="application/json")
    assert answer.status_code == 422
    told = [detail["field"] for detail in error_of(answer)["details"]]
    assert told == [f"x{number}" for number in range(100)]


def test_an_unknown_field_of_a_part_returns_422_with_its_path(alice: User, alice_client: Client) -> None:
    ids = one_of_everything(alice)
    answer = alice_client.post(
        f"{CONVERSATIONS}/{ids['conversation_id']}/messages",
        {"content": [{"type": "text", "text": "Hello", "colour": "red"}]},
        content_type="application/json",
    )
    assert answer.status_code == 422
    assert [item["field"] for item in error_of(answer)["details"]] == ["content.0.colour"]


def test_an_invalid_parameter_returns_422_with_its_name(alice_client: Client) -> None:
    answer = alice_client.get(CONVERSATIONS, {"limit": "many"})
    assert answer.status_code == 422
    assert error_of(answer)["details"][0]["field"] == "limit"


def test_unknown_parameters_return_422_with_their_names(alice_client: Client) -> None:
    answer = alice_client.get(CONVERSATIONS, {"limit": "5", "colour": "red", "Cursor": ""})
    assert answer.status_code == 422
    assert [item["field"] for item in error_of(answer)["details"]] == ["colour", "Cursor"]
    assert alice_client.post("/api/v1/conversations?title=x").status_code == 422


@pytest.mark.parametrize("offset", ["-1", str(2**63)])
def test_the_offset_of_an_upload_is_bounded(alice_client: Client, offset: str) -> None:
    address = f"/api/v1/imports/{odd.ROW_ID}/parts?offset={offset}"
    answer = alice_client.post(address, b"x", content_type="application/octet-stream")
    assert (answer.status_code, error_of(answer)["details"][0]["field"]) == (422, "offset")


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_the_length_of_a_messages_idempotency_key_is_bounded(
    alice: User, alice_client: Client, key: str
) -> None:
    address = f"{CONVERSATIONS}/{one_of_everything(alice)['conversation_id']}/messages"
    sent = {"data": {"content": "Hello"}, "content_type": "application/json"}
    answer = alice_client.post(address, **sent, headers={"Idempotency-Key": key})
    assert (answer.status_code, error_of(answer)["details"][0]["field"]) == (422, "Idempotency-Key")


PART = ("body", "message", "content", "parts", 0)


@pytest.mark.parametrize(
    ("location", "body", "path"),
    [
        ((*PART, "text", "text"), {"content": [{"type": "text", "text": 5}]}, "content.0.text"),
        (PART, {"content": [{"type": "sound"}]}, "content.0"),
        ((*PART, "image"), {"content": [{"type": "image"}]}, "content.0"),
        (("body", "message"), {}, "body"),
        (("query", "limit"), None, "limit"),
    ],
)
def test_field_path_names_the_invalid_field(location: tuple[str | int, ...], body: object, path: str) -> None:
    assert field_path(location, body) == path


@pytest.mark.parametrize(
    ("location", "body", "path"),
    [
        ((*PART, "text", "text"), {"content": [{"type": "text"}]}, "content.0.text"),
        (("body", "message", "content"), {}, "content"),
        (("body", "message"), None, "body"),
    ],
)
def test_field_path_names_the_missing_field(location: tuple[str | int, ...], body: object, path: str) -> None:
    assert field_path(location, body, is_missing=True) == path


def test_an_oversized_body_returns_413(alice_client: Client, settings: object) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    answer = alice_client.post(CONVERSATIONS, {"title": "x" * 2_000}, content_type="application/json")
    assert answer.status_code == 413
    assert error_of(answer)["code"] == "too_large"


@pytest.mark.parametrize("fill", [10, 100_000], ids=["small", "large"])
def test_characters_that_no_database_can_store_are_replaced(alice_client: Client, fill: int) -> None:
    body = '{"title": "a\\u0000b\\ud800c\\ud83d\\ude00"' + " " * fill + "}"
    answer = alice_client.generic("POST", CONVERSATIONS, body, content_type="application/json")
    assert answer.status_code == 201
    assert answer.json()["title"] == "a\ufffdb\ufffdc\U0001f600"


def test_a_large_invalid_body_returns_400_to_users_and_401_to_others(
    alice_client: Client, client: Client
) -> None:
    body = "{" * 100_000
    known = alice_client.generic("POST", CONVERSATIONS, body, content_type="application/json")
    assert (known.status_code, error_of(known)["code"]) == (400, "malformed")
    nobody = client.generic("POST", CONVERSATIONS, body, content_type="application/json")
    assert nobody.status_code == 401


def test_an_unexpected_error_reveals_no_details(alice_client: Client, settings: object) -> None:
    """Provoke the error with a setting of the wrong type."""
    settings.RETENTION_DAYS = "thirty"
    answer = alice_client.post(CONVERSATIONS, {}, content_type="application/json")
    assert answer.status_code == 500
    assert error_of(answer)["code"] == "internal"
    assert b"Traceback" not in answer.content
    assert b"thirty" not in answer.content
