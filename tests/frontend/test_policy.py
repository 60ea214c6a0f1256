"""The content security policy of all responses, and the nonce in the page."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client

from chatapp.accounts.models import User
from chatapp.operations.http.security_headers import content_security_policy
from chatapp.operations.monitoring import health


def policy_of(response: HttpResponse) -> dict[str, str]:
    directives = (part.strip().partition(" ") for part in response["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in directives}


@pytest.mark.django_db
def test_a_page_runs_only_scripts_with_its_nonce(client: Client) -> None:
    response = client.get("/accounts/login/")
    policy = policy_of(response)
    assert policy["default-src"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "dompurify service-worker"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    nonce = re.search(r"'nonce-([\w-]+)'", policy["script-src"])
    assert nonce
    scripts = re.findall(r"<script[^>]*>", response.content.decode())
    assert scripts
    # Scripts of this type are data, which browsers do not run.
    run = [script for script in scripts if 'type="application/json"' not in script]
    assert [script for script in run if f'nonce="{nonce[1]}"' not in script] == []


@pytest.mark.django_db
def test_every_response_has_its_own_nonce(client: Client) -> None:
    first, second = (policy_of(client.get("/accounts/login/"))["script-src"] for _ in range(2))
    assert first != second


@pytest.mark.django_db
def test_the_admin_may_write_html_strings_but_runs_no_foreign_script(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root@example.com", "a long password"))
    policy = policy_of(client.get("/admin/"))
    assert "require-trusted-types-for" not in policy
    assert policy["script-src"].startswith("'self' 'nonce-")


async def test_an_asynchronous_view_gets_the_same_policy(async_client: AsyncClient) -> None:
    assert iscoroutinefunction(health.healthz)
    response = await async_client.get("/healthz")
    assert "'nonce-" in policy_of(response)["script-src"]


def test_a_view_with_a_policy_of_its_own_keeps_it() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers={"Content-Security-Policy": "sandbox"})

    assert content_security_policy(view)(HttpRequest())["Content-Security-Policy"] == "sandbox"
