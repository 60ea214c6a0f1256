"""The security and cache headers of responses, checked for every route."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver

from chatapp.accounts.models import User
from chatapp.operations.http.etags import MAX_HASHED_AT_ONCE_BYTES, MAX_HASHED_BYTES, with_etag
from tests.admin.test_every_page import addresses, patterns
from tests.files.test_files_api import upload

pytestmark = [pytest.mark.django_db(transaction=True)]
ROUTES = sorted(
    {address for route in patterns(get_resolver().url_patterns) for address in addresses(route)[:1]}
)
DENIED = ("camera=()", "microphone=(self)", "geolocation=()", "payment=()", "usb=()")


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
    # Only the diagram page may be framed, by our own page, and it is sandboxed.
    is_framed = policy.startswith("sandbox allow-scripts;") and "frame-ancestors 'self'" in policy
    assert answer.headers["X-Frame-Options"] == ("SAMEORIGIN" if is_framed else "DENY")


def test_every_route_sends_security_and_cache_headers(admin_user: User, alice: User) -> None:
    assert len(ROUTES) > 150
    client = Client(raise_request_exception=False)
    for user in (None, alice, admin_user):
        if user is not None:
            client.force_login(user)
        for address in ROUTES:
            if "logout" not in address:
                check(client.get(address))


@pytest.mark.parametrize(
    "path", ["/api/v1/conversations/{id}", "/api/v1/conversations", "/api/v1/models", "/v1/models"]
)
def test_an_unchanged_resource_is_not_sent_again(
    api_client, alice, bob, path, django_assert_num_queries
) -> None:
    client = api_client(alice)
    made = client.post("/api/v1/conversations", {"title": "Lisbon"}, "application/json").json()["id"]
    address = path.format(id=made)
    client.get(address)  # fills the caches of this user
    with CaptureQueriesContext(connection) as whole:
        first = client.get(address)
    assert first.headers["Cache-Control"] == "private, no-store"
    known = {"If-None-Match": f'"another", W/{first.headers["ETag"]}'}
    with django_assert_num_queries(len(whole)):
        again = client.get(address, headers=known)
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert again.headers["Cache-Control"] == "private, no-store"
    assert client.head(address, headers=known).status_code == 304
    assert client.head(address).headers["ETag"] == first.headers["ETag"]
    assert client.get(address, headers={"If-None-Match": '"another"'}).content == first.content
    assert client.get(address, headers={"If-Match": '"another"'}).status_code == 200
    assert Client().get(address, headers=known).status_code == 401
    if "conversations" in path:
        client.patch(f"/api/v1/conversations/{made}", {"title": "Porto"}, "application/json")
        changed = client.get(address, headers=known)
        assert (changed.status_code, b"Porto" in changed.content) == (200, True)
    if made in address:
        assert api_client(bob).get(address, headers=known).status_code == 404


def test_an_image_is_cached_privately_and_revalidated(api_client, alice, bob) -> None:
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


class Watched(HttpResponse):
    """Records the thread that reads the content last, which is the one that hashes it."""

    read_by: threading.Thread | None = None

    @property
    def content(self) -> bytes:
        self.read_by = threading.current_thread()
        return super().content

    @content.setter
    def content(self, value: bytes) -> None:
        HttpResponse.content.fset(self, value)  # type: ignore[attr-defined]


async def test_a_long_response_is_hashed_outside_the_event_loop() -> None:
    request = RequestFactory().get("/")
    hashed = {}
    for size in (MAX_HASHED_AT_ONCE_BYTES, MAX_HASHED_AT_ONCE_BYTES + 1, MAX_HASHED_BYTES + 1):
        answer = Watched(b"x" * size)
        await with_etag(request, answer)
        hashed[size] = (answer.has_header("ETag"), answer.read_by is threading.current_thread())
    assert list(hashed.values()) == [(True, True), (True, False), (False, True)]
