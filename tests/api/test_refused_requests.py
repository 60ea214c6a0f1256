"""Requests that Django rejects before they reach a view have errors of the usual shape; HEAD works if GET does."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User


def test_an_unknown_host_returns_an_error_in_the_shape_of_the_api(db: None) -> None:
    ours = Client().get("/api/v1/me", headers={"host": "evil.example"})
    assert (ours.status_code, ours.json()["error"]["code"]) == (400, "malformed")
    openai = Client().get("/v1/models", headers={"host": "evil.example"})
    told = openai.json()["error"]
    assert (openai.status_code, told["type"], told["param"]) == (400, "invalid_request_error", None)
    assert "PUBLIC_URL" in told["message"]
    page = Client().get("/memory", headers={"host": "evil.example"})
    assert page["Content-Type"].startswith("text/html")


def test_an_uncaught_error_has_openais_shape_below_v1(settings: Any) -> None:
    client = Client(raise_request_exception=False)
    settings.MIDDLEWARE = ["tests.api.test_refused_requests.failing"]
    told = client.get("/v1/models").json()["error"]
    assert (told["type"], told["param"]) == ("server_error", None)
    assert client.get("/api/v1/me").json()["error"]["code"] == "internal"


def failing(_: object) -> object:
    def fail(request: object) -> object:
        raise RuntimeError("secret")

    return fail


@pytest.mark.parametrize(
    "path", ["/", "/memory", "/manifest.webmanifest", "/favicon.ico", "/service-worker.js"]
)
def test_head_returns_the_status_of_get_on_pages(alice: User, path: str) -> None:
    client = Client()
    client.force_login(alice)
    got, headed = client.get(path), client.head(path)
    assert (headed.status_code, headed.content) == (got.status_code, b"")
    assert headed.status_code in (200, 302)


def test_parser_advice_of_python_is_not_shown_to_clients(alice_client: Client) -> None:
    for body in ("[" * 5000 + "]" * 5000, '{"title": ' + "9" * 5000 + "}"):
        answer = alice_client.post("/api/v1/conversations", body, content_type="application/json")
        message = answer.json()["error"]["message"]
        assert answer.status_code == 400
        assert "recursion" not in message, message
        assert "sys." not in message, message
