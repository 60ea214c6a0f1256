"""Messages sent during an answer: seen by the next model call, edited or deleted before it, or answered next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from chatapp.providers.models import ModelConfig
from tests.api import own_tools
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.api.running import (
    new_conversation,
    read_until,
    running_service,
    send,
    wait_for_end,
    wait_for_words,
)
from tests.api.tool_talk import asks_for, start, stored, wait_for_tool
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up"):
        yield


async def wait_for_next(program: Program, path: str) -> None:
    """Wait until the next run has ended, if one is active."""
    row = (await program.get(path)).json()
    if row["active_run"]:
        await read_until(await program.get(f"{path}/events", after_seq=row["last_seq"]), "run.finished")


@pytest.mark.mechanism("fim.injection")
async def test_a_message_sent_during_an_answer_is_seen_by_the_next_model_call(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("look_up"), says("En français."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation, run = await start(alice_program, "Tell me.")
        await wait_for_tool(alice_program, conversation, "running")
        path = f"conversations/{conversation}/inject"
        sent = await alice_program.post(path, content="In French, please.", client_id="one")
        assert sent.status_code == 202
        again = await alice_program.post(path, content="In French, please.", client_id="one")
        assert (again.json(), sent.json()["injected"]) == (sent.json(), True)
        assert (await alice_program.post(path, content="Other", client_id="one")).status_code == 422
        look_up.release.set()
        await wait_for_end(alice_program, run)
    last = model_server.requests[-1].messages
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "user"]
    assert last[-1]["content"] == "In French, please."
    assert await stored(conversation) == [
        (0, "user", "message"),
        (1, "assistant", "message"),
        (2, "tool", "message"),
        (3, "user", "injected"),
        (4, "assistant", "message"),
    ]


async def test_a_queued_message_can_be_edited_or_deleted_until_a_model_call_has_seen_it(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("look_up"), says("En français."), says("Yes."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation, run = await start(alice_program, "Tell me.")
        await wait_for_tool(alice_program, conversation, "running")
        path = f"conversations/{conversation}"
        words = ("In Frnch, please.", "And mention heliotrope.", "Thanks.")
        sent = [(await alice_program.post(f"{path}/inject", content=word)).json() for word in words]
        french, secret, _ = [f"{path}/messages/{one['message_id']}" for one in sent]
        edited = await alice_program.patch(french, content="In French, please.")
        assert (edited.status_code, edited.json()["content"]) == (200, "In French, please.")
        assert (await alice_program.delete(secret)).status_code == 204
        look_up.release.set()
        assert (await wait_for_end(alice_program, run))["status"] == "complete"
        told = await read_until(await alice_program.get(f"{path}/events", after_seq=0), "run.finished")
        page = (await alice_program.get(f"{path}/messages")).json()["items"]
        refused = await alice_program.patch(french, content="In German!")
        await wait_for_end(alice_program, refused.json()["run_id"])
        branch = (await alice_program.get(f"{path}/messages")).json()["items"]
    asked = [message["content"] for message in model_server.requests[1].messages if message["role"] == "user"]
    assert asked == ["Tell me.", "In French, please.", "Thanks."]
    assert "heliotrope" not in str([event.data for event in told])
    assert "In Frnch" not in str([event.data for event in told]), "nor could anybody find it to forget it"
    assert "heliotrope" not in str(page)
    assert [message["position"] for message in page] == list(range(7))
    assert [event.type for event in told if event.type in ("message.edited", "message.forgotten")] == [
        "message.edited",
        "message.forgotten",
    ]
    assert refused.json()["message"]["id"] != page[-1]["id"], "once it was seen, an edit makes a branch"
    assert [message["content"] for message in branch][:-1] == ["Tell me.", "In German!"]


async def test_a_deleted_queued_message_is_not_answered(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1))
    async with running_service():
        conversation, run = await start(alice_program, "First?")
        await wait_for_words(model_server)
        path = f"conversations/{conversation}"
        sent = (await alice_program.post(f"{path}/inject", content="Second?")).json()
        assert (await alice_program.delete(f"{path}/messages/{sent['message_id']}")).status_code == 204
        model_server.release()
        assert (await wait_for_end(alice_program, run))["status"] == "complete"
        assert (await alice_program.get(path)).json()["active_run"] is None
    assert len(model_server.requests_of("chat")) == 1


async def test_other_users_cannot_edit_or_delete_queued_messages(
    alice_program: Program, charlie_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("Kept."))
    async with running_service():
        conversation, run = await start(alice_program, "First?")
        await wait_for_words(model_server)
        sent = (await alice_program.post(f"conversations/{conversation}/inject", content="Second?")).json()
        path = f"conversations/{conversation}/messages/{sent['message_id']}"
        assert (await charlie_program.patch(path, content="Mine")).status_code == 404
        assert (await charlie_program.delete(path)).status_code == 404
        assert (await alice_program.get(path)).json()["content"] == "Second?"
        model_server.release()
        await wait_for_end(alice_program, run)


async def test_a_message_sent_during_an_answer_begins_no_turn(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    note = {"type": "inject_message", "message": "It is turn {turn}."}
    hook = {"id": "h", "on": "turn_start", "condition": {"type": "always"}, "action": note}
    model_server.script(asks_for("look_up"), says("Once."), says("Twice."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation = await new_conversation(alice_program, hooks=[hook])
        path = f"conversations/{conversation}"
        sent = await alice_program.post(
            f"{path}/messages", content="Look.", headers={"Prefer": "respond-async"}
        )
        await wait_for_tool(alice_program, conversation, "running")
        await alice_program.post(f"{path}/inject", content="In French, please.")
        look_up.release.set()
        await wait_for_end(alice_program, sent.json()["run_id"])
        await send(alice_program, conversation, "And now?")
    assert "In French, please." in model_server.requests[1].text
    assert [("turn 1." in request.text, "turn 2." in request.text) for request in model_server.requests] == [
        (True, False),
        (True, False),
        (False, True),
    ]


async def test_a_deleted_queued_message_begins_no_turn(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    note = {"type": "inject_message", "message": "It is turn {turn}."}
    hook = {"id": "h", "on": "turn_start", "condition": {"type": "always"}, "action": note}
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("Third."), says("Fourth."))
    async with running_service():
        conversation = await new_conversation(alice_program, hooks=[hook])
        path = f"conversations/{conversation}"
        prefer = {"Prefer": "respond-async"}
        await alice_program.post(f"{path}/messages", content="First?", headers=prefer)
        await wait_for_words(model_server)
        sent = (await alice_program.post(f"{path}/inject", content="Second?")).json()
        assert (await alice_program.delete(f"{path}/messages/{sent['message_id']}")).status_code == 204
        third = await alice_program.post(f"{path}/inject", content="Third?")
        model_server.release()
        await wait_for_end(alice_program, third.json()["run_id"])
        await wait_for_next(alice_program, path)
        await send(alice_program, conversation, "Fourth?")
    assert "turn 2." in model_server.requests[1].text
    assert "turn 3." in model_server.requests[2].text


@pytest.mark.mechanism("fim.injection")
async def test_messages_that_no_model_call_has_seen_are_answered_next(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("The second answer."))
    async with running_service():
        conversation, run = await start(alice_program, "First?")
        await wait_for_words(model_server)
        await alice_program.post(f"conversations/{conversation}/inject", content="Second?")
        await alice_program.post(f"conversations/{conversation}/inject", content="Third?")
        model_server.release()
        await wait_for_end(alice_program, run)
        await wait_for_next(alice_program, f"conversations/{conversation}")
        page = (await alice_program.get(f"conversations/{conversation}/messages")).json()["items"]
    said = [(message["role"], message["content"]) for message in page]
    assert said == [
        ("user", "First?"),
        ("assistant", "The first answer."),
        ("user", "Second?"),
        ("user", "Third?"),
        ("assistant", "The second answer."),
    ]
    assert [message["position"] for message in page] == [0, 1, 2, 3, 4]
    assert {message["kind"] for message in page} == {"message"}


async def test_an_injected_message_without_an_active_answer_is_an_ordinary_message(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Hello."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        sent = (await alice_program.post(f"conversations/{conversation}/inject", content="Hi")).json()
        assert sent["injected"] is False
        assert (await wait_for_end(alice_program, sent["run_id"]))["status"] == "complete"
    assert model_server.requests[-1].messages[-1]["content"] == "Hi"
