"""What is alice's is not there for anybody else, and a token does what its scopes say, at every address."""

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
"""Open to whoever has a link's token; this one is nobody's."""
READS = {"get", "head"}
COMPUTES = {"/api/v1/conversations/{conversation_id}/context", "/api/v1/agents/preview"}
"""Asked with POST, and writes nothing."""


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
    """Return the ids of what alice has, by their names in the addresses; for all other names an id that exists
    nowhere."""
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
def test_a_stranger_finds_nothing_of_anybodys(home: Service, ids: dict[str, str]) -> None:
    with home.client_of(BOB) as bob:
        for method, path in OPERATIONS:
            if is_of_one_row(path):
                answer = ask(bob, method, path, ids)
                # A body that this address does not take is refused before anything is looked for.
                expected = (403,) if is_for_operators(path) else (404, 422)
                assert answer.status_code in expected, (method, path, answer.status_code)
                assert SECRET not in answer.text, (method, path)
    with home.client_of(ALICE) as alice:
        title = alice.get(f"/api/v1/conversations/{ids['conversation_id']}").json()["title"]
        assert title == SECRET


def test_nobody_is_let_in_without_a_token(home: Service, ids: dict[str, str]) -> None:
    with home.client() as nobody:
        for method, path in OPERATIONS:
            answer = ask(nobody, method, path, ids)
            expected = 404 if method == "get" and path.startswith(SHARED) else 401
            assert answer.status_code == expected, (method, path, answer.status_code)
            assert SECRET not in answer.text


@pytest.mark.parametrize("scope", ["read", "memory", "chat"])
def test_a_token_does_what_its_scope_says(home: Service, ids: dict[str, str], scope: str) -> None:
    made = home.manage("create_token", ALICE, "--scopes", scope, "--name", f"only {scope}")
    with home.client(made.split()[-1]) as program:
        for method, path in OPERATIONS:
            if method == "delete" or "events" in path or path.endswith(("/export", "forget")):
                continue  # would end what the other tests ask for, or does not end by itself
            answer = ask(program, method, path, ids)
            place = (scope, method, path, answer.status_code)
            assert answer.status_code < 500, place
            if scope == "read" and method not in READS and path not in COMPUTES:
                assert answer.status_code in (403, 422), place
            if scope == "memory" and "/conversations" in path:
                assert answer.status_code == 403, place
        refused = [program.post("/api/v1/tokens", json={}), program.request("DELETE", "/api/v1/me", json={})]
        assert [answer.status_code for answer in refused] == [403, 403]
