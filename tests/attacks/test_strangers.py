"""At every endpoint, other users cannot see alice's data, and a token can do only what its scopes allow."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.api.description import all_operations, is_for_operators
from tests.fixtures.processes import ServiceStarter
from tests.servers.people import ALICE, BOB, make_people
from tests.servers.service import Service

SECRET = "xylophone-4711"
MADE_UP = str(uuid4())
OPERATIONS = all_operations()
SHARED = "/api/v1/shared/{token}"
"""Open to anybody who has a link's token. The token in these tests does not exist."""
READS = {"get", "head"}
COMPUTES = {"/api/v1/conversations/{conversation_id}/context", "/api/v1/agents/preview"}
"""Endpoints with POST that write nothing."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, start_shared: ServiceStarter) -> Service:
    if request.param == "sqlite":
        return start_shared()
    service = start_shared(production=True)
    people = make_people(service.env, (ALICE, BOB))
    service.tokens.update(people.tokens)
    service.cookies.update(people.cookies)
    return service


@pytest.fixture(scope="module")
def ids(home: Service) -> dict[str, str]:
    """Return the ids of alice's objects by path parameter, and for all other parameters an id that does not exist."""
    with home.client_of(ALICE) as alice:
        messages = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": SECRET}]
        made = alice.post("/api/v1/conversations/import", json={"messages": messages, "title": SECRET})
        conversation = made.json()["id"]
        said = alice.get(f"/api/v1/conversations/{conversation}/messages").json()["items"]
        file = alice.post("/api/v1/files", files={"file": ("a.txt", SECRET.encode(), "text/plain")})
        entry = alice.post("/api/v1/memory/entries", json={"text": SECRET})
        token = alice.get("/api/v1/tokens").json()["items"][0]
    known = {
        "conversation_id": conversation,
        "message_id": said[0]["id"],
        "file_id": file.json()["id"],
        "entry_id": entry.json()["id"],
        "token_id": token["id"],
    }
    return defaultdict(lambda: MADE_UP, known)


def ask(client: httpx2.Client, method: str, path: str, ids: dict[str, str]) -> httpx2.Response:
    body: dict[str, Any] = {"content": "Hi", "title": "Mine", "text": "Mine", "summary": "Mine"}
    named = {name.strip("{}"): ids[name.strip("{}")] for name in path.split("/") if name.startswith("{")}
    return client.request(method.upper(), path.format(**named), json=body if method != "get" else None)


def is_of_one_row(path: str) -> bool:
    return "_id}" in path


@pytest.mark.mechanism("contract.ownership")
def test_a_stranger_cannot_find_objects_of_other_users(home: Service, ids: dict[str, str]) -> None:
    with home.client_of(BOB) as bob:
        for method, path in OPERATIONS:
            if is_of_one_row(path):
                answer = ask(bob, method, path, ids)
                # An invalid body is refused before the object is looked up.
                expected = (403,) if is_for_operators(path) else (404, 422)
                assert answer.status_code in expected, (method, path, answer.status_code)
                assert SECRET not in answer.text, (method, path)
    with home.client_of(ALICE) as alice:
        title = alice.get(f"/api/v1/conversations/{ids['conversation_id']}").json()["title"]
        assert title == SECRET


def test_every_endpoint_needs_a_token(home: Service, ids: dict[str, str]) -> None:
    with home.client() as nobody:
        for method, path in OPERATIONS:
            answer = ask(nobody, method, path, ids)
            expected = 404 if method == "get" and path.startswith(SHARED) else 401
            assert answer.status_code == expected, (method, path, answer.status_code)
            assert SECRET not in answer.text


@pytest.mark.parametrize("scope", ["read", "memory", "chat"])
def test_a_token_can_do_only_what_its_scope_allows(home: Service, ids: dict[str, str], scope: str) -> None:
    made = home.manage("create_token", ALICE, "--scopes", scope, "--name", f"only {scope}")
    with home.client(made.split()[-1]) as program:
        for method, path in OPERATIONS:
            if method == "delete" or "events" in path or path.endswith(("/export", "forget")):
                continue  # It would delete objects of other tests, or it never ends.
            answer = ask(program, method, path, ids)
            place = (scope, method, path, answer.status_code)
            assert answer.status_code < 500, place
            if scope == "read" and method not in READS and path not in COMPUTES:
                assert answer.status_code in (403, 422), place
            if scope == "memory" and "/conversations" in path:
                assert answer.status_code == 403, place
        refused = [program.post("/api/v1/tokens", json={}), program.request("DELETE", "/api/v1/me", json={})]
        assert [answer.status_code for answer in refused] == [403, 403]
