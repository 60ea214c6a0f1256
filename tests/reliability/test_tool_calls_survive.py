"""A tool call cut off by kill -9 is shown as interrupted and is not repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service
from tests.servers.waiting import wait_for

MAIL = Behaviour(tool_calls=({"name": "send_mail", "arguments": {"to": "bob"}},), text="", tokens=0)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def service(start_service: Callable[..., Service], model: ModelServer, tmp_path: Path) -> Service:
    return start_service(
        OPENAI_BASE_URL=model.base_url,
        LLM_MODEL="test-model",
        EXTRA_TOOLS="tests.servers.mail_tool.send_mail",
        DEFAULT_TOOLS="send_mail",
        MAIL_FOLDER=str(tmp_path),
    )


def post(client: httpx2.Client, path: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/{path}", json=fields)
    assert answer.status_code < 300, answer.text
    return dict(answer.json())


@pytest.mark.mechanism("contract.tools-once")
def test_an_interrupted_tool_call_is_not_repeated(
    service: Service, model: ModelServer, tmp_path: Path
) -> None:
    client = service.client_of(ALICE)
    model.script(MAIL)
    conversation = post(client, "conversations")["id"]
    client.headers["Prefer"] = "respond-async"
    run = post(client, f"conversations/{conversation}/messages", content="Write to Bob.")["run_id"]
    del client.headers["Prefer"]
    wait_for((tmp_path / "sent").exists, what="the mail", explain=service.output)

    service.kill()
    service.start()
    client = service.client_of(ALICE)
    wait_for(
        lambda: client.get(f"/api/v1/runs/{run}").json()["status"] == "interrupted",
        what="the end",
    )
    [call] = [
        call
        for step in client.get(f"/api/v1/runs/{run}/trace").json()["iterations"]
        for call in step["tools"]
    ]
    assert call["state"] == "interrupted"
    assert "may or may not have happened" in call["preview"]
    page = client.get(f"/api/v1/conversations/{conversation}/messages").json()["items"]
    assert [message["role"] for message in page] == ["user", "assistant", "tool", "assistant"]
    assert [message["position"] for message in page] == [0, 1, 2, 3]

    (tmp_path / "go-on").touch()
    model.script(MAIL, says("It may have been sent; I did not send it again."))
    reply = post(client, f"runs/{run}/continue")["message"]["content"]
    assert reply == "It may have been sent; I did not send it again."
    assert (tmp_path / "sent").read_text() == "bob\n"
    assert "may or may not have happened" in model.requests[-1].text
