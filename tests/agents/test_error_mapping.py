"""Errors of providers are mapped to one category and one sentence that a user can act on."""

from __future__ import annotations

import time
from typing import get_args

import pytest

from agents.chat_models.error_mapping import (
    MESSAGE_TOO_LONG,
    describe_error,
    map_error,
    read_error_text,
    redact_words,
)
from agents.errors import ModelErrorCategory, retry_pause

CATEGORIES: tuple[ModelErrorCategory, ...] = get_args(ModelErrorCategory)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_sentence_says_that_data_is_kept_and_what_to_do(category: ModelErrorCategory) -> None:
    sentence = describe_error(category).message
    assert "is stored" in sentence or "is kept" in sentence
    assert any(wish in sentence for wish in ("Retry", "hoose", "Send", "administrator", "Rephrase"))
    assert len(sentence) < 260


@pytest.mark.parametrize(
    ("status", "body", "category"),
    [
        (401, {"error": {"message": "No auth credentials found"}}, "auth"),
        (403, {"error": {"message": "Your key may not use this endpoint"}}, "auth"),
        (403, {"error": {"message": "Account suspended: insufficient balance"}}, "quota"),
        (404, {"detail": "Not Found"}, "not_found"),
        (400, {"error": {"message": "model 'x' not found"}}, "not_found"),
        (402, "", "quota"),
        (408, "", "timeout"),
        (429, "", "rate_limit"),
        (413, "Payload Too Large", "overflow"),
        (500, "", "server"),
        (502, "<html><head><title>502 Bad Gateway</title></head></html>", "server"),
        (503, {"error": {"message": "Loading model", "code": 503}}, "server"),
        (504, "upstream request timeout", "timeout"),
        (400, {"error": "something else"}, "bad_request"),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}, "bad_request"),
        (307, "", "not_found"),
        (None, {"error": {"message": "boom"}}, "server"),
    ],
)
def test_status_and_body_decide_the_category(status: int | None, body: object, category: str) -> None:
    assert map_error(status, body).category == category


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "6"}, "", 6.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Please try again in 120ms.", 0.12),
        (
            {"retry-after": "Wed, 21 Oct 2026 07:28:07 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            "",
            7.0,
        ),
        (
            {"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            "",
            None,
        ),
        ({"retry-after": "\u00b2"}, "", None),
        ({"retry-after": "Wed, 99 Oct"}, "", None),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 +99999999999999"}, "", None),
        ({"retry-after": "1 Jan 99999999999999999999 00:00:00 GMT"}, "", None),
        ({}, "later", None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_parsed(
    headers: dict[str, str], text: str, seconds: float | None
) -> None:
    error = map_error(429, {"error": {"message": text}}, headers)
    assert error.retry_after_s == seconds


def test_the_error_of_a_provider_behind_a_gateway_is_found() -> None:
    body = {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": '{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}'},
        }
    }
    error = map_error(400, body)
    assert (error.category, error.window_tokens) == ("overflow", 200_000)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "a", "code": "b"}}', "a (code: b)"),
        (b'{"object": "error", "message": "a", "code": 400}', "a (code: 400)"),
        ('[{"error": {"message": "a", "status": "INVALID_ARGUMENT"}}]', "a (status: INVALID_ARGUMENT)"),
        ("<!doctype html><title>Gone</title>", "HTML page: Gone"),
        ("plain words", "plain words"),
        (None, ""),
    ],
)
def test_the_providers_error_text_is_found(body: object, words: str) -> None:
    assert read_error_text(body) == words


SECRETS = [
    "sk-proj-AbCd1234efGH5678",
    "sk-test***********************wxyz",
    "http://10.1.2.3:8000/v1/chat",
    "https://llm.corp.internal/v1?key=abc",
    "vllm-7.models.svc",
    "10.20.30.40:9000",
    "fd00:1:2::7",
    "model-host:8443",
    "ops@example.com",
    "/srv/models/llama/weights",
    "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("status", [400, 401, 500, None])
def test_keys_and_addresses_of_a_provider_are_redacted(status: int | None, secret: str) -> None:
    error = map_error(status, {"error": {"message": f"Incorrect API key provided: {secret}. See {secret}"}})
    assert secret not in f"{error} {error.message} {error.detail} {error.provider_words}"


def test_the_message_for_users_contains_none_of_the_providers_words() -> None:
    error = map_error(400, {"error": {"message": "Flux capacitor of tenant seven is cold"}})
    assert "capacitor" not in f"{error} {error.message} {error.detail}"
    assert (error.detail, error.provider_words) == ("HTTP 400", "Flux capacitor of tenant seven is cold")


def test_no_part_of_a_known_key_is_left_where_a_providers_words_are_cut() -> None:
    error = map_error(
        400, "word " * 117 + "correct-horse-battery-staple", secrets=("correct-horse-battery-staple",)
    )
    assert error.provider_words == "word " * 117 + "[…]"


def test_a_known_key_is_redacted_whatever_its_form() -> None:
    assert redact_words("the key hunter2 is wrong", ("hunter2", "")) == "the key […] is wrong"


def test_a_single_message_that_is_too_long_is_not_an_overflow() -> None:
    body = {"error": {"message": "Invalid 'messages[3].content': string too long. Expected at most 1048576."}}
    error = map_error(400, body)
    assert (error.category, str(error), error.message) == ("bad_request", MESSAGE_TOO_LONG, MESSAGE_TOO_LONG)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 5_000 + "]" * 5_000,
        "x" * 5_000_000,
        '{"error":' * 3_000 + "1" + "}" * 3_000,
        "maximum context length is " + "9" * 5_000,
        {"error": 10**5_000},
        {"error": {"code": 10**5_000}},
    ],
)
def test_an_error_of_any_size_and_depth_becomes_one_short_error(body: object) -> None:
    error = map_error(500, body)
    assert error.category in ("server", "overflow")
    assert len(error.provider_words) <= 600


@pytest.mark.parametrize(
    "text",
    ["<html>" + "<title>" * 60_000, "<html>" + "<h1" * 60_000, "a." * 30_000, "a-" * 30_000, " " * 60_000],
)
def test_a_long_error_is_parsed_in_bounded_time(text: str) -> None:
    began = time.thread_time()
    map_error(400, text)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("status", "pauses"), [(500, [1.0, None]), (503, [1.0, 2.0, None]), (529, [1.0, 2.0, None])]
)
def test_an_overloaded_server_gets_two_retries_and_a_failing_one_gets_one(
    status: int, pauses: list[float | None]
) -> None:
    error = map_error(status, "")
    assert [retry_pause(error, [error] * retries) for retries in range(len(pauses))] == pauses
