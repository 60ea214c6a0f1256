"""Every path with every method and odd values: no request causes a server error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from itertools import cycle, islice, product
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from chatapp.accounts.models import User
from chatapp.providers.models import ModelConfig
from tests.api import odd
from tests.api.description import all_operations, describe_api, is_for_operators
from tests.api.everything import one_of_everything
from tests.api.program import Answer, Program
from tests.api.running import running_service
from tests.api.test_ownership import all_addresses
from tests.fixtures.people import ALL_SCOPES, token_header

pytestmark = pytest.mark.slow

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
SAMPLES: dict[str, Any] = {
    "content": "Hello",
    "query": "parrots",
    "keep": "names",
    "summary": "What was said.",
    "text": "A parrot.",
    "revision": 1,
    "markdown": "- A parrot.",
    "yaml": "name: Made",
    "name": "Made",
    "messages": [{"role": "user", "content": "Hello"}],
    "item_ids": [odd.ROW_ID],
    "ids": [odd.ROW_ID],
    "action": "archive",
    "rating": "good",
    "day": "2026-11-21",
    "preview": True,  # calls no model
}
"""A valid value for each required field of a body. An id of the same name takes precedence."""


def operations() -> list[tuple[str, str]]:
    """Return the operations: reads first, deletions last, and that of the account last of all."""
    found = [(method.upper(), path) for method, path in all_operations()]
    order = {"GET": 0, "DELETE": 2}
    return sorted(
        found, key=lambda each: (order.get(each[0], 1), each[1].endswith("/me"), "forget" not in each[1])
    )


def described(method: str, path: str) -> dict[str, Any]:
    operation: dict[str, Any] = describe_api()["paths"][path][method.lower()]
    return operation


def named_in(operation: dict[str, Any], place: str) -> list[str]:
    return [item["name"] for item in operation.get("parameters", []) if item["in"] == place]


def body_fields(operation: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the names of all fields of the body, and those of the required fields."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return _fields(content.get("schema", {}))


def _fields(schema: dict[str, Any]) -> tuple[set[str], set[str]]:
    if "$ref" in schema:
        return _fields(describe_api()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    names, required = set(schema.get("properties", ())), set(schema.get("required", ()))
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        more, needed = _fields(inner)
        names |= more
        required |= needed
    return names, required


def valid_body(operation: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    names, required = body_fields(operation)
    known = {**SAMPLES, **ids}
    return {name: known[name] for name in required | ({"preview", "text"} & names) if name in known}


def refused(answer: Answer) -> set[str]:
    """Return the names of the fields and parameters that the response rejects."""
    if answer.status_code != 422:
        return set()
    return {detail["field"].partition(".")[0] for detail in answer.error.get("details") or ()}


class BackgroundCaller:
    """Sends requests and keeps those that caused a server error."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.count = 0
        self.taken: Counter[str] = Counter()
        """How often an odd value was accepted, by place: parameter or field."""
        # All operations parse these alike, so each operation is sent only some of them, in turn.
        self.names, self.texts = cycle(odd.NAMES), cycle(odd.TEXTS)
        self.bodies, self.content_types = cycle(odd.SHORT_BODIES), cycle(odd.CONTENT_TYPES.items())

    async def ask(self, who: Program, method: str, path: str, **more: Any) -> Answer:
        answer = await who.call(method, path, **more)
        self.count += 1
        if answer.is_stream:
            await answer.hang_up()
        if answer.status_code >= 500:
            shown = {name: repr(value)[:300] for name, value in more.items()}
            self.failures.append(
                f"{answer.status_code} {method} {path[:200]} {shown} {answer.content[:200]!r}"
            )
        return answer

    def report(self) -> None:
        print(f"{self.count} requests, taken: {dict(self.taken)}")
        assert not self.failures, "\n".join(self.failures)


@pytest.fixture(autouse=True)
def without_limits(settings: Any) -> None:
    settings.MESSAGES_PER_MINUTE = 0
    settings.MAX_OWN_AGENTS = 10_000


@pytest.fixture
def operator_program(admin_user: User) -> Program:
    return Program({name.lower(): value for name, value in token_header(admin_user, ALL_SCOPES).items()})


async def ask_operation(
    asking: BackgroundCaller, who: Program, method: str, path: str, ids: dict[str, str]
) -> None:
    operation, address = described(method, path), path.format(**ids)
    await ask_queries(asking, who, method, address, named_in(operation, "query"))
    for name in named_in(operation, "header"):
        for value in islice(asking.texts, 7):
            sendable = value.encode("latin-1", "ignore").decode("latin-1")
            await asking.ask(who, method, address, headers={name: sendable}, body=b"{}")
    for name in named_in(operation, "path"):
        for value in islice(asking.names, 4):
            await asking.ask(who, method, path.format(**{**ids, name: value}), body=b"{}")
    if "requestBody" in operation:
        await ask_bodies(asking, who, method, address)
        valid = valid_body(operation, ids)
        await asking.ask(who, method, address, body=valid)
        await ask_fields(asking, who, method, address, sorted(body_fields(operation)[0]), valid)
    await asking.ask(who, method, address)


async def ask_bodies(asking: BackgroundCaller, who: Program, method: str, address: str) -> None:
    """Send invalid bodies. They do not reach the database, so SQLite is enough."""
    if connection.vendor != "sqlite":
        return
    for body in islice(asking.bodies, 3):
        await asking.ask(who, method, address, body=body)
    for content_type, body in islice(asking.content_types, 2):
        await asking.ask(who, method, address, body=body, headers={"content-type": content_type})


async def ask_queries(
    asking: BackgroundCaller, who: Program, method: str, address: str, names: list[str]
) -> None:
    """Send each odd value in all parameters at once, then in those that did not reject it."""
    for value in (*odd.texts(connection.vendor), *(odd.cursors() if "cursor" in names else ())):

        async def send(some: Collection[str], value: str = value) -> Answer:
            return await asking.ask(who, method, address, query=dict.fromkeys(some, value))

        asking.taken["parameter"] += await ask_together(send, names)


async def ask_fields(
    asking: BackgroundCaller, who: Program, method: str, address: str, names: list[str], valid: dict[str, Any]
) -> None:
    """Send each odd value in all fields of a body, then in those that did not reject it, with valid other fields."""
    for value in odd.json_values(connection.vendor):
        everywhere = odd.with_fields({}, names, value)

        async def send(some: Collection[str], value: str = value, everywhere: str = everywhere) -> Answer:
            body = everywhere if len(some) == len(names) else odd.with_fields(valid, some, value)
            return await asking.ask(who, method, address, body=body.encode())

        asking.taken["field"] += await ask_together(send, names)


async def ask_together(send: Callable[[Collection[str]], Awaitable[Answer]], names: Collection[str]) -> int:
    """Send a value in all of `names`, without those that reject it, until it is accepted. Return how many accepted it.

    An accepted value was read in each place. If another error gets in the way, send each name alone.
    """
    left = sorted(names)
    while left:
        answer = await send(left)
        rest = [name for name in left if name not in refused(answer)]
        if rest == left:
            break
        left = rest
    if not left or answer.status_code < 300:
        return len(left)
    alone = [await send([name]) for name in left] if len(left) > 1 else []
    return sum(answer.status_code < 300 for answer in alone)


async def test_no_operation_causes_a_server_error(
    alice: User,
    alice_program: Program,
    charlie: User,
    charlie_program: Program,
    operator_program: Program,
    model: ModelConfig,
) -> None:
    asking = BackgroundCaller()
    theirs = await sync_to_async(one_of_everything)(charlie)
    asked_by_strangers = set(all_addresses())  # by test_ownership, which checks the responses
    ids: dict[str, str] = {}
    async with running_service():
        for method, path in operations():
            if method != "GET" or not ids:  # other methods change the rows that they name
                ids = {**await sync_to_async(one_of_everything)(alice), "day": "2026-11-21", "version": "1"}
            if (method.lower(), path) not in asked_by_strangers:
                await asking.ask(alice_program, method, path.format(**{**ids, **theirs}), body=b"{}")
                await asking.ask(Program(), method, path.format(**ids), body=b"{}")
            who = operator_program if is_for_operators(path) else alice_program
            await ask_operation(asking, who, method, path, ids)
    asking.report()
    assert asking.taken["parameter"] >= 30, asking.taken
    assert asking.taken["field"] >= 50, asking.taken


@pytest.mark.sqlite  # unsupported methods do not reach the database, and HEAD is handled as GET
async def test_no_unsupported_method_causes_a_server_error(
    alice: User, alice_program: Program, model: ModelConfig
) -> None:
    asking = BackgroundCaller()
    ids = {**await sync_to_async(one_of_everything)(alice), "day": "2026-11-21", "version": "1"}
    for path, method in product(describe_api()["paths"], METHODS):
        if method.lower() not in describe_api()["paths"][path]:
            status = (await asking.ask(alice_program, method, path.format(**ids), body=b"{}")).status_code
            assert status in (200, 405) or method == "HEAD", (
                method,
                path,
                status,
            )  # HEAD has the status of GET
    asking.report()


async def test_no_body_policy_or_hook_causes_a_server_error(
    alice: User, alice_program: Program, model: ModelConfig
) -> None:
    asking = BackgroundCaller()
    ids = await sync_to_async(one_of_everything)(alice)
    conversation = f"/api/v1/conversations/{ids['conversation_id']}"
    for body in odd.BODIES:
        await asking.ask(alice_program, "POST", "/api/v1/conversations", body=body)
        await asking.ask(alice_program, "POST", "/api/v1/conversations/import", body=body)
    for field, values in (("context_policy", odd.policies()), ("hooks", odd.hooks())):
        for value in values:
            body = odd.with_field({}, field, value).encode()
            if (await asking.ask(alice_program, "PATCH", conversation, body=body)).status_code == 200:
                await asking.ask(alice_program, "POST", f"{conversation}/context", body=b"{}")
    asking.report()
