"""What providers answer becomes one category and one sentence a user can act on."""

from __future__ import annotations

from typing import get_args

import pytest

from agents.error_mapping import describe_error, map_error, read_error_text
from agents.errors import ModelErrorCategory

CATEGORIES: tuple[ModelErrorCategory, ...] = get_args(ModelErrorCategory)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_sentence_says_what_is_safe_and_what_to_do(category: ModelErrorCategory) -> None:
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
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", None),
        ({}, "later", None),
    ],
)
def test_the_wait_a_provider_asks_for_is_read(
    headers: dict[str, str], text: str, seconds: float | None
) -> None:
    error = map_error(429, {"error": {"message": text}}, headers)
    assert error.retry_after_s == seconds


def test_the_words_of_a_provider_behind_a_gateway_are_found() -> None:
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
def test_the_providers_own_words_are_kept_as_detail(body: object, words: str) -> None:
    assert read_error_text(body) == words
