"""An import calls no model, however long its chats are, until one of them is continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatapp.conversations.actions.imports import INDEXED_AT_ONCE
from tests.fixtures.processes import ServiceStarter
from tests.importing.exports import chatgpt, gpt_node
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.waiting import wait_for

COUNT = INDEXED_AT_ONCE + 1  # too many to index before the import returns, so that a worker indexes them
LAST = f"PB-{COUNT - 1:05d}"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    summary = says(f"They count pebbles; the last one has the code {LAST}.")
    with ModelServer(default=says("Pebbles."), summary_default=summary) as server:
        yield server


def long_export() -> str:
    nodes = [
        gpt_node(
            f"n{number}",
            f"n{number - 1}" if number else None,
            ("user", "assistant")[number % 2],
            f"Pebble {number} has the code PB-{number:05d} and lies between many others.",
            1_700_000_000.0 + number,
        )
        for number in range(COUNT)
    ]
    return json.dumps(
        [
            chatgpt(
                title="Pebbles",
                mapping={node["id"]: node for node in nodes},
                current_node="",
                is_archived=False,
            )
        ]
    )


@pytest.mark.mechanism("ours.import")
def test_no_model_is_called_until_an_imported_chat_is_continued(
    start_shared: ServiceStarter, model: ModelServer, tmp_path: Path
) -> None:
    env = {
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "sk-test",
        "LLM_MODEL": "test-model",
        "LLM_CONTEXT_SIZE": "16000",
        "LLM_MAX_OUTPUT_TOKENS": "2000",
    }
    service = start_shared(**env)
    alice = service.client_of(ALICE)
    file = tmp_path / "conversations.json"
    file.write_text(long_export())
    assert f"with {COUNT:,} messages" in service.manage("import_conversations", ALICE, str(file))
    again = alice.post("/api/v1/imports", files={"file": file.open("rb")}).raise_for_status().json()
    wait_for(lambda: alice.get(f"/api/v1/imports/{again['id']}").json()["state"] == "done", what="the upload")
    assert alice.get(f"/api/v1/imports/{again['id']}").json()["known"] == 1
    posted = [{"role": "user", "content": f"Shell {number} lies in the sand"} for number in range(COUNT)]
    alice.post("/api/v1/conversations/import", json={"messages": posted}).raise_for_status()

    def is_found(words: str) -> bool:
        return bool(alice.get("/api/v1/memory/search", params={"q": words}).json()["items"])

    wait_for(lambda: is_found(LAST) and is_found(f"Shell {COUNT - 1}"), what="the worker has indexed both")
    [pebbles] = alice.get("/api/v1/conversations", params={"q": "Pebbles"}).json()["items"][:1]
    asked = [each.path for each in model.requests if each.path.endswith(("/completions", "/embeddings"))]
    assert asked == [], "it was only asked what it is"

    path = f"/api/v1/conversations/{pebbles['id']}"
    alice.post(f"{path}/messages", json={"content": "And now?", "stream": False}).raise_for_status()
    assert model.requests_of("chat")
    wait_for(lambda: model.requests_of("summary"), what="now that it goes on, what left is summarised")
