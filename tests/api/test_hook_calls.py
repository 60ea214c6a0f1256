"""Tools that hooks call: recorded before they run, approved, shown in the trace, and not repeated by a retry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Message
from chatapp.operations import clock, tasks
from chatapp.providers.models import ModelConfig
from chatapp.runs.models import ToolCall
from tests.api import own_tools
from tests.api.own_tools import audit, look_up, pay, send_mail
from tests.api.program import Program
from tests.api.running import read_until, wait_for_end
from tests.api.tool_talk import wait_for_tool
from tests.context_engine.talking import settle, talking
from tests.forgetting.everywhere import tables_with
from tests.servers.behaviour import fails, says
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up", "send_mail", "pay", "audit"):
        yield


async def make_agent(name: str, **more: Any) -> str:
    """Create an agent with a hook that calls this tool."""
    action = {"type": "module_action", "action": name, "params": {"say": "Sunny."}}
    hook = {"id": "h", "on": "turn_start", "condition": {"type": "always"}, "action": action} | more
    agent = await Agent.objects.acreate(name="Hooked", hooks=[hook])
    return agent.name


async def trace_of(program: Program, run_id: str) -> dict[str, Any]:
    trace: dict[str, Any] = (await program.get(f"runs/{run_id}/trace")).json()
    return trace


@pytest.mark.mechanism("digitorn.hook-module")
async def test_the_model_sees_the_result_of_a_hooks_tool_and_the_trace_shows_the_call(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with talking(alice_program, agent=await make_agent("look.up")) as talk:
        answer = await talk.ask("And the weather?")
        trace = await trace_of(alice_program, answer["run_id"])
        stored = (await alice_program.get(f"conversations/{talk.id}/messages")).json()["items"]
    note = model_server.requests[-1].messages[-2]
    assert (note["role"], note["content"]) == ("user", "<tool_result>\nlook_up:\nSunny.\n</tool_result>")
    [fired] = trace["hooks"]
    assert (fired["hook_id"], fired["level"], fired["text"]) == ("h", "agent", "look_up: Sunny.")
    assert (fired["tool"]["state"], fired["tool"]["arguments"]) == ("done", '{"say": "Sunny."}')
    assert [step["tools"] for step in trace["iterations"]] == [[]], "no model asked for it"
    assert [message["role"] for message in stored] == ["user", "assistant"]
    [(_, caller)] = look_up.calls
    assert (caller.conversation_id, caller.run_id) == (talk.id, answer["run_id"])


@pytest.mark.parametrize(
    ("decision", "calls", "state", "text"),
    [("approve", 1, "done", "pay: Sunny."), ("deny", 0, "denied", "pay: it was not approved.")],
)
async def test_a_hooks_tool_call_at_the_start_of_a_turn_waits_for_approval(
    alice_program: Program, model: ModelConfig, decision: str, calls: int, state: str, text: str
) -> None:
    async with talking(alice_program, agent=await make_agent("pay")) as talk:
        path = f"conversations/{talk.id}/messages"
        accepted = await alice_program.post(path, content="Go.", headers={"Prefer": "respond-async"})
        run = accepted.json()["run_id"]
        told = await read_until(await alice_program.get(f"conversations/{talk.id}/events"), "tool")
        assert told[-1].data["state"] == "waiting"
        assert pay.calls == []
        await alice_program.post(f"runs/{run}/tools/{told[-1].data['call_id']}/{decision}")
        assert (await wait_for_end(alice_program, run))["status"] == "complete"
        [fired] = (await trace_of(alice_program, run))["hooks"]
    assert (len(pay.calls), fired["tool"]["state"], fired["text"]) == (calls, state, text)


async def test_a_hooks_tool_call_at_the_end_of_a_turn_is_recorded_but_is_no_event_of_the_run(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, agent=await make_agent("look_up", on="turn_end")) as talk:
        answer = await talk.ask("One?")
        of_run = [event["type"] for event in await talk.events() if event.get("run_id") == answer["run_id"]]
        assert of_run[-1] == "run.finished"
        assert [event["state"] for event in await talk.events("tool")] == ["running", "done"]
        [fired] = (await trace_of(alice_program, answer["run_id"]))["hooks"]
        assert (fired["hook_id"], fired["tool"]["state"]) == ("h", "done")
        [_, message] = (await alice_program.get(f"conversations/{talk.id}/messages")).json()["items"]
        assert [tool["hook_id"] for tool in message["tools"]] == ["h"]


async def test_a_hooks_tool_that_needs_consent_is_denied_at_the_end_of_a_turn(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, agent=await make_agent("pay", on="turn_end")) as talk:
        answer = await talk.ask("One?")
        [fired] = (await trace_of(alice_program, answer["run_id"]))["hooks"]
    assert (pay.calls, fired["tool"]["state"]) == ([], "denied")
    assert "nobody to ask" in fired["tool"]["preview"]


async def test_the_sweep_closes_a_hooks_tool_call_whose_process_died_after_the_run(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program, agent=await make_agent("send_mail", on="turn_end")) as talk:
        answer = await talk.ask("One?")
        an_hour_ago = clock.now() - timedelta(hours=1)
        await ToolCall.objects.filter(run=answer["run_id"]).aupdate(
            state="running", result=[], requested_at=an_hour_ago
        )
        await sync_to_async(tasks.sweep)()
        [fired] = (await trace_of(alice_program, answer["run_id"]))["hooks"]
    assert fired["tool"]["state"] == "interrupted"
    assert "may or may not have happened" in fired["tool"]["preview"]


async def test_the_sweep_leaves_a_tool_call_alone_until_its_timeout(
    alice_program: Program, model: ModelConfig
) -> None:
    audit.release = asyncio.Event()
    async with talking(alice_program, agent=await make_agent("audit", on="turn_end")) as talk:
        accepted = await alice_program.post(f"conversations/{talk.id}/messages", content="One?")
        await wait_for_tool(alice_program, talk.id, "running")
        calls = ToolCall.objects.filter(run__answer=accepted.json()["message"]["id"])
        for minutes, state in ((119, "running"), (150, "interrupted")):
            await calls.aupdate(requested_at=clock.now() - timedelta(minutes=minutes))
            await sync_to_async(tasks.sweep)()
            assert (await calls.aget()).state == state
        audit.release.set()
        await settle()


async def test_a_retry_does_not_repeat_a_hooks_tool_call(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(fails(401, "No such key."), says("Done."))
    async with talking(alice_program, agent=await make_agent("send_mail")) as talk:
        failed = await talk.ask("One?", status=502)
        message = failed["error"]["details"]["message"]["id"]
        retried = await alice_program.post(f"conversations/{talk.id}/messages/{message}/regenerate")
        assert retried.status_code == 200, retried.content
        await settle()
    assert len(send_mail.calls) == 1
    assert "Sunny." in model_server.requests[-1].text


async def test_stop_interrupts_a_hooks_tool_call(alice_program: Program, model: ModelConfig) -> None:
    async with talking(alice_program, agent=await make_agent("send_mail")) as talk:
        send_mail.release = asyncio.Event()
        path = f"conversations/{talk.id}/messages"
        accepted = await alice_program.post(path, content="Go.", headers={"Prefer": "respond-async"})
        run = accepted.json()["run_id"]
        told = await read_until(await alice_program.get(f"conversations/{talk.id}/events"), "tool")
        assert told[-1].data["state"] == "running"
        await alice_program.post(f"runs/{run}/stop")
        assert (await wait_for_end(alice_program, run))["status"] == "stopped"
        [_, message] = (await alice_program.get(path)).json()["items"]
    [call] = message["tools"]
    assert call["state"] == "interrupted"
    assert "may or may not have happened" in call["preview"]


async def test_a_note_for_the_next_turn_is_kept_if_that_turn_has_already_begun(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """The hook at the end of turn 1 finishes while the hook at the start of turn 2 still waits for approval."""

    def once(turn: int, name: str, **more: Any) -> dict[str, Any]:
        action = {"type": "module_action", "action": name, "params": {"say": f"Left by turn {turn}."}}
        return {"id": name, "condition": {"type": "turn_count", "count": turn}, "action": action} | more

    hooks = [once(1, "look_up", on="turn_end"), once(2, "pay", on="turn_start")]
    await Agent.objects.acreate(name="Hooked", hooks=hooks)
    look_up.release = asyncio.Event()
    async with talking(alice_program, agent="Hooked") as talk:
        path = f"conversations/{talk.id}"
        assert (await alice_program.post(f"{path}/messages", content="One?")).status_code == 200
        await wait_for_tool(alice_program, talk.id, "running")
        second = await alice_program.post(
            f"{path}/messages", content="Two?", headers={"Prefer": "respond-async"}
        )
        waiting = await wait_for_tool(alice_program, talk.id, "waiting")
        look_up.release.set()
        await read_until(await alice_program.get(f"{path}/events", after_seq=0), "hook")
        await alice_program.post(f"runs/{second.json()['run_id']}/tools/{waiting['call_id']}/approve")
        await settle()
        await talk.ask("Three?")
    asked = [str(request.messages) for request in model_server.requests_of("chat")]
    assert ["Left by turn 1." in messages for messages in asked] == [False, False, True]


SAID = "The gate code of the depot is 7731-heliotrope."


async def make_agent_at_the_end(*names: str) -> str:
    """Create an agent with a hook at the end of a turn for each of these tools, in this order."""
    hook = {"on": "turn_end", "condition": {"type": "always"}}
    hooks = [
        hook | {"id": name, "action": {"type": "module_action", "action": name, "params": {}}}
        for name in names
    ]
    agent = await Agent.objects.acreate(name="Hooked", hooks=hooks)
    return agent.name


async def forget(program: Program, text: str) -> None:
    message = await Message.objects.aget(parts__0__text=text)
    answer = await program.post("memory/forget", message_id=str(message.pk))
    assert answer.status_code == 200, answer.content


@pytest.mark.mechanism("forgetting.runs")
async def test_text_forgotten_while_a_hook_reads_it_after_the_answer_does_not_come_back(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with talking(alice_program) as elsewhere:
        await elsewhere.ask(SAID)
    look_up.answer = lambda _: SAID
    look_up.release = asyncio.Event()
    async with talking(alice_program, agent=await make_agent("look_up", on="turn_end")) as talk:
        await alice_program.post(f"conversations/{talk.id}/messages", content="One?")
        await wait_for_tool(alice_program, talk.id, "running")
        await forget(alice_program, SAID)
        look_up.release.set()
        await settle()
        assert await sync_to_async(tables_with)("heliotrope") == []
        [told] = [event["text"] for event in await talk.events("hook")]
        assert "discarded" in told
        look_up.release, look_up.answer = None, lambda _: "Sunny."
        await talk.ask("Two?")
        assert "heliotrope" not in model_server.requests[-1].text


@pytest.mark.mechanism("forgetting.runs")
async def test_text_that_a_hook_read_before_it_was_forgotten_is_no_note_for_the_next_turn(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program) as elsewhere:
        await elsewhere.ask(SAID)
    look_up.answer = lambda _: SAID
    audit.release = asyncio.Event()
    async with talking(alice_program, agent=await make_agent_at_the_end("look_up", "audit")) as talk:
        await alice_program.post(f"conversations/{talk.id}/messages", content="One?")
        await asyncio.to_thread(wait_for, lambda: audit.calls, what="the second hook's call")
        await forget(alice_program, SAID)
        audit.release.set()
        await settle()
        assert await sync_to_async(tables_with)("heliotrope") == []


async def test_a_hook_that_begins_after_a_forgetting_calls_no_tool(
    alice_program: Program, model: ModelConfig
) -> None:
    async with talking(alice_program) as elsewhere:
        await elsewhere.ask(SAID)
    audit.release = asyncio.Event()
    async with talking(alice_program, agent=await make_agent_at_the_end("audit", "look_up")) as talk:
        await alice_program.post(f"conversations/{talk.id}/messages", content="One?")
        await wait_for_tool(alice_program, talk.id, "running")
        await forget(alice_program, SAID)
        audit.release.set()
        await settle()
    assert look_up.calls == []
