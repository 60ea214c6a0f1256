"""The MCP server, as the official client sees it on a running service."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.fixtures.processes import ServiceStarter
from tests.servers.apart import run_apart
from tests.servers.people import ALICE, CHARLIE
from tests.servers.service import Service

READING = {"memory_search", "memory_days", "memory_read_day"}
WRITING = {"memory_add", "memory_forget"}
CHATS = {"conversations_list", "conversation_read"}


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter) -> Service:
    return start_shared()


def talk(service: Service, token: str, conversation: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
            transport = streamable_http_client(f"{service.url}/mcp", http_client=http)
            async with Client(transport, **options) as client:
                return await conversation(client)

    return run_apart(run())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_can_add_search_and_forget_entries(service: Service, mode: str) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | WRITING | CHATS
        assert tools["memory_search"].annotations.read_only_hint is True
        assert tools["memory_forget"].annotations.destructive_hint is True
        added = await client.call_tool("memory_add", {"text": f"The parrot of {mode} is called PICO-7."})
        entry = added.structured_content
        found = await client.call_tool("memory_search", {"query": "What is the parrot called?"})
        assert any("PICO-7" in item["text"] for item in found.structured_content["items"])
        day = await client.call_tool("memory_read_day", {"day": entry["created_at"][:10]})
        assert "PICO-7" in day.structured_content["markdown"]
        read = await client.read_resource(f"palimpsest://memory/days/{entry['created_at'][:10]}")
        assert "PICO-7" in read.contents[0].text
        assert not (await client.call_tool("memory_forget", {"entry_id": entry["id"]})).is_error
        gone = await client.call_tool("memory_search", {"query": f"parrot of {mode}"})
        assert not any(f"parrot of {mode}" in item["text"] for item in gone.structured_content["items"])

    talk(service, service.tokens[ALICE], conversation, mode=mode)


def test_conversations_are_listed_and_read(service: Service) -> None:
    api = service.client_of(ALICE)
    said = [{"role": "user", "content": f"Line {number}"} for number in range(120)]
    made = api.post("/api/v1/conversations/import", json={"title": "Long", "messages": said}).json()["id"]
    api.post("/api/v1/conversations", json={"title": "Long and secret", "temporary": True})

    async def conversation(client: Client) -> None:
        page = (await client.call_tool("conversations_list", {"query": "Long"})).structured_content
        assert [item["id"] for item in page["items"]] == [made]
        asked = {"conversation_id": made, "limit": 50}
        newest = (await client.call_tool("conversation_read", asked)).structured_content
        assert newest["items"][-1]["content"] == "Line 119"
        older = await client.call_tool("conversation_read", asked | {"before": newest["next_cursor"]})
        assert older.structured_content["items"][-1]["content"] == "Line 69"
        resources = {each.uri: each.name for each in (await client.list_resources()).resources}
        assert resources[f"palimpsest://conversations/{made}"] == "Long"
        assert "Long and secret" not in resources.values()
        assert "palimpsest://memory/profile" in resources
        text = (await client.read_resource(f"palimpsest://conversations/{made}")).contents[0].text
        assert "Line 119" in text
        assert "Line 5\n" not in text
        templates = (await client.list_resource_templates()).resource_templates
        assert "palimpsest://conversations/{id}" in {each.uri_template for each in templates}

    talk(service, service.tokens[ALICE], conversation)


def test_charlie_and_tokens_without_the_scope_get_no_data(service: Service) -> None:
    api = service.client_of(ALICE)
    made = api.post("/api/v1/conversations", json={"title": "Secret"}).json()["id"]
    entry = api.post("/api/v1/memory/entries", json={"text": "The secret is XYLOPHONE."}).json()["id"]

    async def charlies(client: Client) -> None:
        found = await client.call_tool("memory_search", {"query": "XYLOPHONE"})
        assert "XYLOPHONE" not in str(found.structured_content)
        for name, arguments in (
            ("conversation_read", {"conversation_id": made}),
            ("memory_forget", {"entry_id": entry}),
        ):
            assert (await client.call_tool(name, arguments)).is_error
        with pytest.raises(MCPError):
            await client.read_resource(f"palimpsest://conversations/{made}")

    async def chats_alone(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == CHATS
        refused = await client.call_tool("memory_search", {"query": "XYLOPHONE"})
        assert refused.is_error
        assert "scope memory or read" in refused.content[0].text
        with pytest.raises(MCPError):
            await client.read_resource("palimpsest://memory/profile")

    async def reads_alone(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING | CHATS
        assert (await client.call_tool("memory_add", {"text": "No."})).is_error

    talk(service, service.tokens[CHARLIE], charlies)
    for scope, conversation in (("chat", chats_alone), ("read", reads_alone)):
        talk(service, service.token_of(ALICE, scope), conversation)


def test_invalid_arguments_are_reported_as_errors(service: Service) -> None:
    async def conversation(client: Client) -> None:
        for arguments in ({}, {"query": "x", "limit": 10_000}, {"query": "x", "unknown": 1}):
            assert (await client.call_tool("memory_search", arguments)).is_error
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})

    talk(service, service.tokens[ALICE], conversation)


def test_requests_without_a_valid_token_are_refused(service: Service) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "sessionid=1"}):
        answer = service.client().post("/mcp", headers=headers, json={})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert service.client_of(ALICE).get("/mcp").status_code == 405
    assert service.client_of(ALICE).post("/mcp", json={}).status_code in (400, 406)


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "text/plain"}, b"{}", 400),
        ({}, b"{}", 400),
        ({"Content-Type": "application/json"}, b" " * (4 * 2**20 + 1), 413),
    ],
    ids=["another type", "no type", "too long"],
)
def test_requests_that_the_library_refuses_get_a_json_error(
    service: Service, headers: dict[str, str], content: bytes, status: int
) -> None:
    asked = {"Authorization": f"Bearer {service.tokens[ALICE]}", "Accept": "application/json", **headers}
    answer = httpx2.post(f"{service.url}/mcp", content=content, headers=asked, timeout=120)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == -32600
    assert answer.json()["error"]["message"]
