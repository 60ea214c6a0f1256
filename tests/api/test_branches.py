"""Edits and new answers are kept beside the originals, and users can switch between them."""

from __future__ import annotations

from typing import Any

from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send, wait_for_end, wait_for_words
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


async def read_messages(program: Program, conversation: str) -> list[dict[str, Any]]:
    answer = await program.get(f"conversations/{conversation}/messages")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def words(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


async def test_users_can_switch_between_a_question_and_its_edit(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("A"), says("More"), says("B"), says("B2"), says("On"))
    async with running_service():
        conversation = await new_conversation(alice_program)
        at = f"conversations/{conversation}"
        await send(alice_program, conversation, "First")
        await send(alice_program, conversation, "Go on")
        before = await read_messages(alice_program, conversation)
        assert [message.get("siblings") for message in before] == [None] * 4

        await alice_program.patch(f"{at}/messages/{before[0]['id']}", content="Edited")
        edited = await read_messages(alice_program, conversation)
        assert words(edited) == ["Edited", "B"]
        assert edited[0]["siblings"] == [before[0]["id"], edited[0]["id"]]
        await alice_program.post(f"{at}/messages/{edited[1]['id']}/regenerate")
        anew = await read_messages(alice_program, conversation)
        assert anew[1]["siblings"] == [edited[1]["id"], anew[1]["id"]]

        shown = await alice_program.post(f"{at}/messages/{before[0]['id']}/show")
        assert shown.status_code == 200
        assert words(await read_messages(alice_program, conversation)) == ["First", "A", "Go on", "More"]
        assert shown.json()["last_seq"] == (await alice_program.get(at)).json()["last_seq"]

        await alice_program.post(f"{at}/messages/{edited[0]['id']}/show")
        assert words(await read_messages(alice_program, conversation)) == ["Edited", "B2"]
        await alice_program.post(f"{at}/messages/{edited[1]['id']}/show")
        assert words(await read_messages(alice_program, conversation)) == ["Edited", "B"]
        await send(alice_program, conversation, "And then?")
        assert words(await read_messages(alice_program, conversation)) == ["Edited", "B", "And then?", "On"]
    sent = [message["content"] for message in model_server.requests[-1].body["messages"]]
    assert not {"First", "A", "Go on", "More", "B2"} & {str(content) for content in sent}


async def test_users_cannot_switch_branches_during_an_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("A little later.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        sent = (await send(alice_program, conversation, headers={"Prefer": "respond-async"})).json()
        await wait_for_words(model_server)
        path = f"conversations/{conversation}/messages/{sent['message_id']}/show"
        refused = await alice_program.post(path)
        assert (refused.status_code, refused.error["code"]) == (409, "run_active")
        model_server.release()
        await wait_for_end(alice_program, sent["run_id"])
        assert (await alice_program.post(path)).status_code == 200
