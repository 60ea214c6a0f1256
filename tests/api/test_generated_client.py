"""Clients generated from the API description can hold a conversation, in Python and in TypeScript."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agents import events
from tests.api.typescript_client import hold_conversation
from tests.fixtures.processes import ServiceStarter
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service

# Let the generator treat all files as bytes. The test uses JSON instead of Markdown and YAML.
CONFIG = """\
content_type_overrides:
  application/zip: application/octet-stream
  application/yaml: application/octet-stream
  image/jpeg: application/octet-stream
  image/png: application/octet-stream
  image/webp: application/octet-stream
  text/markdown: application/octet-stream
post_hooks: []
"""


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter, model: ModelServer) -> Service:
    return start_shared(OPENAI_BASE_URL=model.base_url, LLM_MODEL="test-model")


def description_of(service: Service, headers: dict[str, str] | None = None) -> httpx2.Response:
    return httpx2.get(f"{service.url}/api/v1/openapi.json", headers=headers, timeout=120)


@pytest.fixture(scope="module")
def generated(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(description_of(service).content)
    (folder / "config.yaml").write_text(CONFIG)
    generator = Path(sys.executable).with_name("openapi-python-client")
    command = [generator, "generate", "--path", "openapi.json", "--config", "config.yaml", "--meta", "none"]
    command += ["--output-path", "palimpsest_client", "--fail-on-warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"palimpsest_client.{name}")
    sys.path.remove(str(folder))


def test_a_generated_python_client_holds_a_conversation(
    service: Service, model: ModelServer, generated: Any
) -> None:
    models = generated("models")
    client = generated("client").AuthenticatedClient(
        base_url=service.url, token=service.tokens[ALICE], timeout=120, raise_on_unexpected_status=True
    )
    model.script(says("Noted."), says("On 3 May."), says("On the third of May."))
    made = generated("api.conversations.create_conversation").sync(
        client=client, body=models.NewConversation(title="Lisbon")
    )
    assert made.title == "Lisbon"
    send = generated("api.messages.send_message")
    first = send.sync(made.id, client=client, body=models.NewMessageIn(content="We fly on 3 May."))
    assert first.message.content == "Noted."
    second = send.sync(made.id, client=client, body=models.NewMessageIn(content="When do we fly?"))
    assert second.usage.input_tokens > 0
    again = generated("api.messages.regenerate_message").sync(made.id, second.message.id, client=client)
    assert again.message.content == "On the third of May."
    page = generated("api.messages.list_messages").sync(made.id, client=client)
    assert [item.role for item in page.items] == ["user", "assistant", "user", "assistant"]
    run = generated("api.runs.get_run").sync(again.run_id, client=client)
    assert run.status == "complete"
    entry = generated("api.memory.create_memory_entry").sync(
        client=client, body=models.NewEntry(text="The code is OWL-9.")
    )
    found = generated("api.memory.search_memory").sync(client=client, q="OWL-9")
    assert any("OWL-9" in item.text for item in found.items)
    generated("api.memory.delete_memory_entry").sync_detailed(entry.id, client=client)
    deleted = generated("api.conversations.delete_conversation").sync_detailed(made.id, client=client)
    assert deleted.status_code == 204
    missing = generated("api.conversations.get_conversation").sync(made.id, client=client)
    assert missing.error.code == "not_found"


def test_a_typescript_client_holds_a_conversation(
    service: Service, model: ModelServer, tmp_path: Path
) -> None:
    model.script(says("Noted."), says("On 3 May."), says("On the third of May."))
    description = description_of(service).content
    held = json.loads(hold_conversation(tmp_path, description, url=service.url, token=service.tokens[ALICE]))
    assert held["waited"] == "Noted."
    assert held["polled"] == "complete"
    assert (held["told"], held["end"]) == ("On the third of May.", "complete")
    assert held["read"] == [
        ["user", "We fly on 3 May."],
        ["assistant", "Noted."],
        ["user", "When do we fly?"],
        ["assistant", "On 3 May."],
        ["user", "In words?"],
        ["assistant", "On the third of May."],
    ]
    assert held["gone"] == [404, "not_found"]


def test_the_description_is_complete_and_supports_etags(service: Service) -> None:
    answer = description_of(service)
    schema = answer.json()
    operations = [each for methods in schema["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names) >= 90
    assert {"createConversation", "sendMessage", "streamEvents", "getMemoryDay", "stopRun"} <= set(names)
    assert all(each["tags"] and each["description"] for each in operations)
    for_everybody = {each["operationId"] for each in operations if not each["x-scopes"]}
    assert for_everybody == {"getSharedConversation", "getSharedImage"}
    assert schema["paths"]["/api/v1/memory/entries"]["post"]["x-scopes"] == ["memory"]
    told = {tag["name"] for tag in schema["tags"]}
    assert {tag for each in operations for tag in each["tags"]} == told
    kinds = {each["properties"]["type"]["const"] for each in event_schemas(schema)}
    assert kinds == {each.model_fields["type"].default for each in event_classes()}
    refused = schema["paths"]["/api/v1/conversations"]["post"]["responses"]["429"]
    assert refused["headers"]["Retry-After"]
    assert refused["content"]["application/json"]["example"]["error"]["code"] == "rate_limited"
    assert list(odd_defaults(schema)) == []
    unchanged = description_of(service, {"If-None-Match": answer.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def event_schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    schemas = schema["components"]["schemas"]
    return [schemas[each["$ref"].rpartition("/")[2]] for each in schemas["Event"]["oneOf"]]


def event_classes() -> list[Any]:
    return [*events.Fact.__args__, *events.Live.__args__]  # type: ignore[attr-defined]


def odd_defaults(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if "default" in value and ("$ref" in value or "allOf" in value):
            yield value
        for inner in value.values():
            yield from odd_defaults(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from odd_defaults(inner)


def test_head_returns_the_status_and_headers_of_get(service: Service) -> None:
    api = service.client_of(ALICE)
    conversation = api.post("/api/v1/conversations", json={}).json()["id"]
    for path in (
        "/api/v1/me",
        f"/api/v1/conversations/{conversation}",
        f"/api/v1/conversations/{conversation}/events",  # GET would start an endless stream
        "/api/v1/conversations/nothing",
        "/api/v1/openapi.json",
        "/v1/models",
        "/healthz",
        "/readyz",
    ):
        head = api.head(path)
        assert head.content == b"", path
        if not path.endswith("/events"):
            got = api.get(path)
            assert (head.status_code, head.headers["Content-Type"]) == (
                got.status_code,
                got.headers["Content-Type"],
            )
            assert head.headers["Content-Length"] == got.headers["Content-Length"], path
    assert api.head("/api/v1/conversations/import").status_code == 405
    assert api.head("/api/v1/memory/forget").status_code == 405
