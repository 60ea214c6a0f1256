"""Ways to go on: with messages held by a Stop, with an edited answer, in a new conversation from a message."""

from __future__ import annotations

from typing import Any

from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import (
    new_conversation,
    read_until,
    running_service,
    send,
    wait_for_end,
    wait_for_words,
)
from tests.api.tool_talk import start, stored
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

KEY = {"Idempotency-Key": "once"}


async def texts(program: Program, conversation: str) -> list[str]:
    page = (await program.get(f"conversations/{conversation}/messages")).json()["items"]
    return [message["content"] for message in page if not message["forgotten"]]


async def stopped_with(program: Program, server: ModelServer, *held: str) -> tuple[str, list[str]]:
    """Return a conversation whose answer was stopped while these messages were queued, and their ids."""
    conversation, run = await start(program, "First?")
    await wait_for_words(server)
    path = f"conversations/{conversation}/inject"
    ids = [(await program.post(path, content=text)).json()["message_id"] for text in held]
    assert (await program.post(f"runs/{run}/stop")).status_code < 300
    assert (await wait_for_end(program, run))["status"] == "stopped"
    assert (await program.get(f"conversations/{conversation}")).json()["active_run"] is None
    return conversation, ids


async def test_a_stopped_answer_is_continued_with_the_held_messages(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("answer, in prose."))
    async with running_service():
        conversation, ids = await stopped_with(
            alice_program, model_server, "In prose, please.", "Never mind."
        )
        path = f"conversations/{conversation}"
        assert (await alice_program.delete(f"{path}/messages/{ids[1]}")).status_code == 204
        page = (await alice_program.get(f"{path}/messages")).json()["items"]
        run = page[1]["run"]["id"]
        more = await alice_program.post(f"runs/{run}/continue", stream=False)
        assert more.status_code == 200, more.content
        assert (await alice_program.post(f"{path}/queue/send")).status_code == 409
        assert await texts(alice_program, conversation) == [
            "First?",
            "The",
            "In prose, please.",
            "answer, in prose.",
        ]
        told = await read_until(await alice_program.get(f"{path}/events", after_seq=0), "message.moved")
    asked = [one["content"] for one in model_server.requests_of("chat")[-1].messages[-4:]]
    assert [asked[0], asked[1], asked[3]] == ["First?", "The", "In prose, please."]
    assert told[-1].data["kind"] == "injected"


async def test_a_stopped_answer_can_be_continued_after_another_branch_was_shown(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(
        Behaviour(text="The first answer.", hold_after=1), says("Elsewhere."), says("answer, in prose.")
    )
    async with running_service():
        conversation, _ids = await stopped_with(alice_program, model_server, "In prose,", "please.")
        path = f"conversations/{conversation}"
        stopped = (await alice_program.get(f"{path}/messages")).json()["items"][1]
        other = await alice_program.post(f"{path}/messages/{stopped['id']}/regenerate", stream=False)
        assert other.json()["message"]["content"] == "Elsewhere."
        await alice_program.post(f"{path}/messages/{stopped['id']}/show")
        more = await alice_program.post(f"runs/{stopped['run']['id']}/continue", stream=False)
        assert more.status_code == 200, more.content
        shown = await texts(alice_program, conversation)
    assert shown == ["First?", "The", "In prose,", "please.", "answer, in prose."]
    positions = [position for position, _, _ in await stored(conversation)]
    assert positions == list(range(len(positions)))


async def test_a_stop_holds_queued_messages_until_they_are_sent(
    alice_program: Program, charlie_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("The second answer."))
    async with running_service():
        conversation, ids = await stopped_with(
            alice_program, model_server, "Secnd?", "Never mind.", "And third?"
        )
        path = f"conversations/{conversation}"
        edited = await alice_program.patch(f"{path}/messages/{ids[0]}", content="Second?")
        assert (edited.status_code, edited.json()["kind"]) == (200, "injected")
        assert (await alice_program.delete(f"{path}/messages/{ids[1]}")).status_code == 204
        assert len(model_server.requests_of("chat")) == 1

        assert (await charlie_program.post(f"{path}/queue/send")).status_code == 404
        sent = await alice_program.post(f"{path}/queue/send", headers=KEY)
        again = await alice_program.post(f"{path}/queue/send", headers=KEY)
        assert (sent.status_code, again.json()) == (202, sent.json())
        await wait_for_end(alice_program, sent.json()["run_id"])
        assert (await alice_program.post(f"{path}/queue/send")).status_code == 409
        told = await read_until(await alice_program.get(f"{path}/events", after_seq=0), "message.moved")
    asked = [one["content"] for one in model_server.requests[-1].messages if one["role"] == "user"]
    assert asked == ["First?", "Second?", "And third?"]
    assert (await stored(conversation))[2:] == [
        (2, "user", "message"),
        (3, "user", "injected"),
        (4, "user", "message"),
        (5, "assistant", "message"),
    ]
    assert told[-1].data["kind"] == "message"


async def test_a_new_message_is_sent_together_with_the_held_ones(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="The first answer.", hold_after=1), says("The second answer."))
    async with running_service():
        conversation, _ = await stopped_with(alice_program, model_server, "Second?")
        await send(alice_program, conversation, "Third?")
    asked = [one["content"] for one in model_server.requests[-1].messages if one["role"] == "user"]
    assert asked == ["First?", "Second?", "Third?"]
    assert {kind for _, _, kind in await stored(conversation)} == {"message"}


async def test_an_edited_answer_is_kept_beside_the_models_answer(
    alice_program: Program, charlie_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Lyon."), says("Because you say so."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = (await send(alice_program, conversation, "Capital of France?")).json()["message"]
        path = f"conversations/{conversation}/messages/{answer['id']}"
        assert (await charlie_program.patch(path, content="Mine")).status_code == 404
        assert (await alice_program.patch(path, content=" ")).status_code == 422
        edited = (await alice_program.patch(path, content="Paris.")).json()
        assert (edited["kind"], edited["role"], edited["content"]) == ("edited", "assistant", "Paris.")
        assert edited["siblings"] == [answer["id"], edited["id"]]
        assert await texts(alice_program, conversation) == ["Capital of France?", "Paris."]
        assert (await alice_program.get(f"conversations/{conversation}")).json()["unread"] is False
        await send(alice_program, conversation, "Why?")
        shown = await alice_program.post(f"{path}/show")
        assert shown.status_code == 200
        assert await texts(alice_program, conversation) == ["Capital of France?", "Lyon."]
    assert [one["content"] for one in model_server.requests[-1].messages][-2] == "Paris."


async def test_a_fork_begins_with_the_conversation_up_to_a_message(
    alice_program: Program, charlie_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Paris."), says("Two million."), says("Yes."))
    async with running_service():
        conversation = await new_conversation(alice_program, title="France", memory="paused", mode="plan")
        await alice_program.patch(f"conversations/{conversation}", mode="react")
        first = (await send(alice_program, conversation, "Capital of France?")).json()["message"]
        await send(alice_program, conversation, "How many live there?")
        path = f"conversations/{conversation}/fork"
        assert (await charlie_program.post(path)).status_code == 404
        assert (await charlie_program.post(path, message_id=first["id"])).status_code == 404
        made = await alice_program.post(path, message_id=first["id"])
        assert made.status_code == 201, made.content
        fork: dict[str, Any] = made.json()
        kept = (fork["title"], fork["memory"], fork["mode"], fork["unread"])
        assert kept == ("France", "paused", "react", False)
        assert await texts(alice_program, fork["id"]) == ["Capital of France?", "Paris."]
        await send(alice_program, fork["id"], "Really?")
        assert len(await texts(alice_program, conversation)) == 4
    asked = [one["content"] for one in model_server.requests[-1].messages if one["role"] != "system"]
    assert asked == ["Capital of France?", "Paris.", "Really?"]
