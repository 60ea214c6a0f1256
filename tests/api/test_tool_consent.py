"""Calls that wait for approval, and stopped calls: none runs without approval, and none that ran is repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.test import override_settings

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from chatapp.realtime.consumer import ChatConsumer
from chatapp.runs.models import ToolCall
from tests.api import own_tools
from tests.api.own_tools import pay, send_mail
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send, wait_for_end
from tests.api.tool_talk import asks_for, start, wait_for_tool
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import PATIENCE_S


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("send_mail", "pay"):
        yield


@pytest.mark.parametrize(("decision", "calls"), [("approve", 1), ("deny", 0)])
async def test_a_call_that_needs_consent_waits_for_it(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, decision: str, calls: int
) -> None:
    model_server.script(asks_for("pay", say="paid"), says("As you say."))
    async with running_service():
        conversation, run = await start(alice_program)
        waiting = await wait_for_tool(alice_program, conversation, "waiting")
        assert pay.calls == []
        path = f"runs/{run}/tools/{waiting['call_id']}/{decision}"
        assert (await alice_program.post(path)).status_code == 200
        assert (await alice_program.post(path)).status_code in (200, 409)
        ended = await wait_for_end(alice_program, run)
        trace = (await alice_program.get(f"runs/{run}/trace")).json()
    assert ended["status"] == "complete"
    assert len(pay.calls) == calls
    [call] = trace["iterations"][0]["tools"]
    assert call["state"] == ("done" if calls else "denied")
    assert ("paid" if calls else "denied this call") in model_server.requests[-1].text


async def test_all_arguments_of_a_call_are_shown_for_approval(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("pay", note="x" * 5_000, to="mallory"), says("Done."))
    async with running_service():
        conversation, run = await start(alice_program)
        waiting = await wait_for_tool(alice_program, conversation, "waiting")
        [seen] = (await alice_program.get(f"runs/{run}/trace")).json()["iterations"][0]["tools"]
        await alice_program.post(f"runs/{run}/tools/{waiting['call_id']}/approve")
        await wait_for_end(alice_program, run)
        [ended] = (await alice_program.get(f"runs/{run}/trace")).json()["iterations"][0]["tools"]
    [(called_with, _)] = pay.calls
    assert json.loads(waiting["arguments"]) == json.loads(seen["arguments"]) == called_with
    assert not waiting["arguments_cut"]
    assert (len(ended["arguments"]), ended["arguments_cut"]) == (4_000, True)


async def test_the_socket_can_inject_messages_and_deny_calls(
    alice: User, alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("pay"), says("As you say."))
    async with running_service():
        conversation, run = await start(alice_program)
        waiting = await wait_for_tool(alice_program, conversation, "waiting")
        socket = WebsocketCommunicator(ChatConsumer.as_asgi(), "/ws/chat")
        socket.scope["user"] = alice
        assert (await socket.connect())[0]
        await socket.send_json_to(
            {"type": "message.inject", "client_id": "k", "conversation_id": conversation, "content": "No!"}
        )
        ack = await frame_of(socket, "ack")
        assert (ack["client_id"], ack["run_id"], ack["injected"]) == ("k", run, True)
        await socket.send_json_to({"type": "tool.deny", "run_id": run, "call_id": waiting["call_id"]})
        await wait_for_end(alice_program, run)
        await socket.disconnect()
    assert pay.calls == []
    assert model_server.requests[-1].messages[-1]["content"] == "No!"


async def frame_of(socket: WebsocketCommunicator, type: str) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = await socket.receive_json_from(timeout=PATIENCE_S)
        if frame["type"] == type:
            return frame


async def test_only_the_owner_can_decide_about_a_call(
    alice_program: Program, charlie_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("pay"))
    async with running_service():
        conversation, run = await start(alice_program)
        waiting = await wait_for_tool(alice_program, conversation, "waiting")
        path = f"runs/{run}/tools/{waiting['call_id']}"
        assert (await charlie_program.post(f"{path}/approve")).status_code == 404
        assert (await charlie_program.get(f"runs/{run}/trace")).status_code == 404
        assert (await alice_program.post(f"runs/{run}/tools/unknown/approve")).status_code == 404
        assert (await alice_program.post(f"{path}/deny")).status_code == 200
        assert (await alice_program.post(f"{path}/approve")).status_code == 409
        await wait_for_end(alice_program, run)
    assert pay.calls == []


async def test_a_call_that_is_not_approved_in_time_is_denied(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("pay"), says("Then not."))
    with override_settings(CONSENT_TIMEOUT_S=0.05):
        async with running_service():
            conversation = await new_conversation(alice_program)
            answer = await send(alice_program, conversation, "Pay.")
    assert answer.json()["message"]["content"] == "Then not."
    assert pay.calls == []
    assert "did not approve this call in time" in model_server.requests[-1].text


async def test_waiting_for_approval_does_not_count_towards_the_time_limit(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("pay"), says("Then not."))
    with override_settings(ANSWER_TIME_LIMIT_S=4, CONSENT_TIMEOUT_S=4.5):
        async with running_service():
            answer = await send(alice_program, await new_conversation(alice_program), "Pay.")
    message = answer.json()["message"]
    assert (message["content"], message["status"]) == ("Then not.", "complete")


@pytest.mark.parametrize("name", ["send_mail", "pay"])
async def test_stop_interrupts_a_running_or_waiting_tool_call(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, name: str
) -> None:
    model_server.script(asks_for(name))
    async with running_service():
        send_mail.release = asyncio.Event()
        conversation, run = await start(alice_program)
        await wait_for_tool(alice_program, conversation, "waiting" if name == "pay" else "running")
        assert (await alice_program.post(f"runs/{run}/stop")).status_code == 200
        ended = await wait_for_end(alice_program, run)
        page = (await alice_program.get(f"conversations/{conversation}/messages")).json()["items"]
    assert ended["status"] == "stopped"
    call = await ToolCall.objects.aget()
    assert call.state == "interrupted"
    expected = "may or may not have happened" if name == "send_mail" else "was not run"
    assert expected in page[2]["content"][0]["text"]
    assert [message["role"] for message in page] == ["user", "assistant", "tool", "assistant"]


async def test_a_retry_does_not_repeat_a_call_that_may_have_happened(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    mail = asks_for("send_mail", to="bob")
    model_server.script(mail)
    async with running_service():
        send_mail.release = asyncio.Event()
        conversation, run = await start(alice_program)
        await wait_for_tool(alice_program, conversation, "running")
        await alice_program.post(f"runs/{run}/stop")
        await wait_for_end(alice_program, run)
        send_mail.release = None
        model_server.script(mail, says("I did not send it again."))
        again = await alice_program.post(f"runs/{run}/continue")
        answer = (await in_database(Message.objects.get)(conversation_id=conversation, run__pk=run)).pk
        model_server.script(mail, says("Nor now."))
        retried = await alice_program.post(f"conversations/{conversation}/messages/{answer}/regenerate")
    assert again.status_code == retried.status_code == 200, again.content
    assert len(send_mail.calls) == 1
    assert "may or may not have happened" in model_server.requests[-1].text
    assert "It is not repeated" in model_server.requests[-1].text
