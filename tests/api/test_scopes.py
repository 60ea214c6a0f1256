"""Each path of both APIs accepts its own scopes only, and shows charlie no data of alice."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.accounts.selectors import SCOPES
from chatapp.features.openai_api.api import ROUTERS as OPENAI_ROUTERS
from chatapp.features.openai_api.models import StoredResponse
from chatapp.features.openai_api.response_shapes import named
from chatapp.operations import clock
from tests.api.conftest import Clients
from tests.api.description import PREFIX, all_operations, operations_of
from tests.api.everything import one_of_everything
from tests.api.program import Answer, Program

OPENAI = [(method, f"/v1{path}") for method, path in operations_of(OPENAI_ROUTERS)]
FOR_EVERYBODY = {f"{PREFIX}/shared/{{token}}", f"{PREFIX}/shared/{{token}}/images/{{image}}"}
OPERATIONS = [pair for pair in [*all_operations(), *OPENAI] if pair[1] not in FOR_EVERYBODY]
WITHOUT_IDS = [path for method, path in OPERATIONS if method == "get" and not re.search(r"\{(?!day\})", path)]
OTHERWISE = {
    ("get", f"{PREFIX}/me"): set(SCOPES),
    ("post", f"{PREFIX}/conversations/{{conversation_id}}/context"): {"chat", "read"},  # only reads
    ("get", f"{PREFIX}/export"): {"read"},  # or both chat and memory: test_export.py
}


def wanted(method: str, path: str) -> set[str]:
    """Return the scopes of which a token needs at least one."""
    if (method, path) in OTHERWISE:
        return OTHERWISE[method, path]
    if path.startswith(f"{PREFIX}/admin/"):
        return {"admin"}
    reads = {"read"} if method == "get" else set()
    return reads | {"memory" if path.startswith(f"{PREFIX}/memory/") else "chat"}


def is_refused(client: Client, method: str, path: str) -> bool:
    """Return whether a token is refused for its scopes. The ids in the path are random."""
    address = re.sub(r"\{[^}]+\}", lambda _: str(uuid4()), path)
    answer = client.generic(method.upper(), address, "{}", content_type="application/json")
    assert answer.status_code != 401, (method, path)
    found = answer.status_code == 403 and answer.json()["error"]["code"] == "insufficient_scope"
    return bool(found)


def test_each_operation_accepts_exactly_its_own_scopes(
    api_client: Clients, admin_user: User, settings: Any
) -> None:
    wrong = []
    for scope in SCOPES:
        client = api_client(admin_user, [scope])
        for method, path in OPERATIONS:
            if is_refused(client, method, path) == (scope in wanted(method, path)):
                wrong.append((scope, method, path))
    assert wrong == []


@pytest.fixture
def secrets_of_alice(alice: User, alice_client: Client) -> dict[str, str]:
    """Return values that responses to charlie must not contain: ids of alice's rows, and part of a word of hers."""
    ids = {name: value for name, value in one_of_everything(alice).items() if len(value) > 20}
    return {**ids, "a word": "ylophone"}


@pytest.mark.mechanism("contract.ownership")
@pytest.mark.parametrize("path", WITHOUT_IDS)
async def test_a_path_without_an_id_shows_only_the_users_own_data(
    charlie_program: Program, secrets_of_alice: dict[str, str], path: str
) -> None:
    query = {"q": "xylophone"} if path.endswith("/search") else {}
    shown = text_of(await charlie_program.get(path.format(day=clock.now().date()), **query))
    assert [name for name, value in secrets_of_alice.items() if value in shown] == []


def text_of(answer: Answer) -> str:
    if answer.headers["content-type"] != "application/zip":
        return answer.content.decode()
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return "\n".join(archive.read(name).decode(errors="replace") for name in archive.namelist())


@pytest.mark.mechanism("contract.ownership")
def test_objects_of_the_openai_api_belong_to_their_owner_even_if_their_model_is_gone(
    alice: User, alice_client: Client, charlie_client: Client
) -> None:
    ids = one_of_everything(alice)
    stored = StoredResponse.objects.create(
        user=alice, run_id=ids["run_id"], owns_turn=False, created_at=clock.now()
    )
    names = {
        "conversation_id": named("conv", ids["conversation_id"]),
        "item_id": named("msg", ids["message_id"]),
        "response_id": named("resp", stored.pk),
    }
    item = {"type": "message", "role": "user", "content": "Mine"}
    asked = [(method, path.format(**names)) for method, path in OPENAI if "_id}" in path]
    asked.sort(key=lambda each: (each[0] == "delete", -each[1].count("/"), "conversations" in each[1]))
    assert len(asked) == 10
    for client, status in ((charlie_client, 404), (alice_client, 200)):
        for method, address in asked:
            fields = {"items": [item]} if address.endswith("items") else {"metadata": {}}
            body = json.dumps(fields if method == "post" else {})
            answer = client.generic(method.upper(), address, body, content_type="application/json")
            assert answer.status_code == status, (method, address, answer.content)
