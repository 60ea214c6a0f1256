"""What browsers are told of every answer: asked of every address of the route table."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver

from chatapp.accounts.models import User
from tests.admin.test_every_page import addresses, patterns
from tests.files.test_files_api import upload

pytestmark = [pytest.mark.django_db(transaction=True)]
ROUTES = sorted(
    {address for route in patterns(get_resolver().url_patterns) for address in addresses(route)[:1]}
)
DENIED = ("camera=()", "microphone=()", "geolocation=()", "payment=()", "usb=()")


def check(answer) -> None:
    kept = answer.headers["Cache-Control"]
    assert "no-store" in kept or kept == "private, no-cache", kept
    assert "public" not in kept
    permissions = answer.headers["Permissions-Policy"]
    assert all(name in permissions for name in DENIED)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    # The frame of diagrams alone is shown in our page, without an origin of its own.
    is_framed = policy.startswith("sandbox allow-scripts;") and "frame-ancestors 'self'" in policy
    assert answer.headers["X-Frame-Options"] == ("SAMEORIGIN" if is_framed else "DENY")


def test_every_address_tells_browsers_what_they_may_do(admin_user: User, alice: User) -> None:
    assert len(ROUTES) > 150
    client = Client(raise_request_exception=False)
    for user in (None, alice, admin_user):
        if user is not None:
            client.force_login(user)
        for address in ROUTES:
            if "logout" not in address:
                check(client.get(address))


def test_an_image_is_kept_by_its_owner_only_and_asked_for_again(api_client, alice, bob) -> None:
    client = api_client(alice)
    made = upload(client)
    address = made.json()["url"]
    first = client.get(address)
    check(first)
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    assert api_client(bob).get(address, headers={"If-None-Match": first.headers["ETag"]}).status_code == 404
    assert client.delete(address).status_code == 204
    assert client.get(address, headers={"If-None-Match": first.headers["ETag"]}).status_code == 404
