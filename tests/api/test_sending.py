"""The three ways to send a message: wait for the answer, stream it, or fetch it later."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.conversations.models import Message
from chatapp.providers.models import ModelConfig
from chatapp.runs.models import Run
from tests.api.program import V1, Program
from tests.api.running import (
    new_conversation,
    read_all,
    read_until,
    running_service,
    send,
    wait_for_end,
    wait_for_words,
)
from tests.servers.behaviour import ERRORS, says
from tests.servers.openai_server import ModelServer

ASYNC = {"Prefer": "respond-async"}


async def test_waiting_returns_the_stored_answer_and_its_usage(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Forty-two."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await send(alice_program, conversation, "What is six times seven?")
        assert answer.status_code == 200, answer.content
        body = answer.json()
        assert body["message"]["content"] == "Forty-two."
        assert (body["message"]["role"], body["message"]["status"]) == ("assistant", "complete")
        assert body["usage"]["output_tokens"] > 0
        assert "compact" not in body
        stored = await alice_program.get(f"conversations/{conversation}/messages/{body['message']['id']}")
        assert stored.json()["content"] == "Forty-two."
        run = (await alice_program.get(f"runs/{body['run_id']}")).json()
        assert (run["status"], run["message_id"]) == ("complete", body["message"]["id"])


@pytest.mark.mechanism("fim.streaming")
async def test_a_stream_begins_with_the_question_and_ends_with_the_run(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    text = "One two three four five six."
    model_server.script(says(text, rate=200))
    async with running_service():
        conversation = await new_conversation(alice_program)
        response = await send(alice_program, conversation, "Count!", stream=True)
        assert response.is_stream
        events = await read_all(response)
    types = [event.type for event in events]
    assert types[0] == "message.created"
    assert types[-1] == "run.finished"
    assert types.index("run.started") < types.index("text.delta") < types.index("message.completed")
    seqs = [event.id for event in events if event.id is not None]
    assert seqs == list(range(seqs[0], seqs[-1] + 1))
    assert all(event.id == event.data.get("seq") for event in events)
    deltas = [event.data for event in events if event.type == "text.delta"]
    assert "".join(delta["text"] for delta in deltas) == text
    assert [delta["offset"] for delta in deltas] == [
        sum(len(earlier["text"]) for earlier in deltas[:number]) for number in range(len(deltas))
    ]
    assert events[types.index("message.completed")].data["message"]["content"] == text


async def test_respond_async_returns_the_ids_immediately(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("A little later.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        among_others = {"Prefer": "wait=10, Respond-Async; why=busy"}
        answer = await send(alice_program, conversation, headers=among_others)
        assert answer.status_code == 202
        assert answer.headers["preference-applied"] == "respond-async"
        body = answer.json()
        assert set(body) == {"run_id", "message_id", "answer_id", "seq"}
        assert answer.headers["location"] == f"{V1}/runs/{body['run_id']}"
        await wait_for_words(model_server)
        model_server.release()
        run = await wait_for_end(alice_program, body["run_id"])
        assert (run["status"], run["message_id"]) == ("complete", body["answer_id"])


async def test_an_empty_message_is_refused_with_its_field(alice_program: Program) -> None:
    conversation = await new_conversation(alice_program)
    for content in ("", " \n", [], [{"type": "text", "text": ""}]):
        answer = await send(alice_program, conversation, content)
        assert answer.status_code == 422
        assert answer.json()["error"]["details"] == [{"field": "content", "message": "is empty"}]


async def test_a_disconnect_does_not_stop_the_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Still here.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        waiting = asyncio.create_task(send(alice_program, conversation, client_id="once"))
        await wait_for_words(model_server)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        model_server.release()
        again = await send(alice_program, conversation, client_id="once")
        assert again.json()["message"]["content"] == "Still here."
    assert len(model_server.requests_of("chat")) == 1


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("kind", "status", "category"),
    [("server", 502, "server"), ("wrong_key", 502, "auth"), ("quota", 502, "quota")],
)
async def test_a_failed_answer_returns_an_error_with_the_failed_message(
    alice_program: Program,
    model: ModelConfig,
    model_server: ModelServer,
    kind: str,
    status: int,
    category: str,
) -> None:
    model_server.defaults["chat"] = ERRORS[kind]()
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await send(alice_program, conversation, "Hello", client_id="once")
        assert answer.status_code == status
        error = answer.error
        assert error["code"] == "model_error"
        assert error["details"]["category"] == category
        assert error["details"]["message"]["status"] == "failed"
        again = await send(alice_program, conversation, "Hello", client_id="once")
        assert (again.status_code, again.json()) == (status, answer.json())
        kept = await alice_program.get(f"conversations/{conversation}/messages")
        assert kept.json()["items"][0]["content"] == "Hello"


async def test_a_stream_of_a_failed_answer_ends_with_its_error(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.defaults["chat"] = ERRORS["wrong_key"]()
    async with running_service():
        conversation = await new_conversation(alice_program)
        response = await send(alice_program, conversation, stream=True)
        events = await read_all(response)
    assert events[-1].type == "run.finished"
    assert events[-1].data["status"] == "failed"
    assert events[-1].data["error"]["category"] == "auth"


async def test_stop_keeps_the_written_text_and_ends_the_waiting_request(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("One two three four.", hold_after=2))
    async with running_service():
        conversation = await new_conversation(alice_program)
        events = await alice_program.get(f"conversations/{conversation}/events")
        waiting = asyncio.create_task(send(alice_program, conversation))
        seen = await read_until(events, "text.delta")
        run_id = seen[-1].data["run_id"]
        stopping = await alice_program.post(f"runs/{run_id}/stop")
        assert stopping.status_code == 200
        answer = await asyncio.wait_for(waiting, 60)
        assert answer.status_code == 200
        assert answer.json()["message"]["status"] == "stopped"
        assert answer.json()["message"]["content"].startswith("One")
        again = await alice_program.post(f"runs/{run_id}/stop")
        assert again.json()["status"] == "stopped"


@pytest.mark.sqlite
async def test_a_question_larger_than_the_window_returns_413_and_calls_no_model(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        refused = await send(alice_program, conversation, "word " * 40_000)
        assert (refused.status_code, refused.error["code"]) == (413, "too_large")
        assert refused.error["message"].startswith("Your message is too large: about ")
        assert not model_server.requests_of("chat")
        page = (await alice_program.get(f"conversations/{conversation}/messages")).json()["items"]
    assert [message["status"] for message in page] == ["complete", "failed"]


async def test_a_stopped_answer_can_be_continued(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("One two three four.", hold_after=2), says("three four."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, stream=True)
        seen = await read_until(first, "text.delta")
        run_id = seen[-1].data["run_id"]
        await alice_program.post(f"runs/{run_id}/stop")
        await wait_for_end(alice_program, run_id)
        more = await alice_program.post(f"runs/{run_id}/continue")
        assert more.status_code == 200, more.content
        assert more.json()["message"]["content"].endswith("three four.")
        assert (await alice_program.post(f"runs/{run_id}/continue")).status_code == 409


async def test_a_second_message_during_an_answer_returns_409(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Rather slow.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, headers=ASYNC)
        second = await send(alice_program, conversation, "And now?", headers=ASYNC)
        assert second.status_code == 409
        assert second.error["code"] == "run_active"
        await wait_for_words(model_server)
        model_server.release()
        await wait_for_end(alice_program, first.json()["run_id"])


async def test_editing_and_regenerating_create_branches(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async def shown() -> list[str]:
        answer = await alice_program.get(f"conversations/{conversation}/messages")
        return [item["content"] for item in answer.json()["items"]]

    model_server.script(says("A"), says("B"), says("C"))
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = (await send(alice_program, conversation, "Question")).json()["message"]
        again = await alice_program.post(f"conversations/{conversation}/messages/{first['id']}/regenerate")
        assert again.json()["message"]["content"] == "B"
        assert await shown() == ["Question", "B"]
        question = again.json()["message"]["parent"]
        edited = await alice_program.patch(
            f"conversations/{conversation}/messages/{question}", content="Better question"
        )
        assert edited.json()["message"]["content"] == "C"
        assert await shown() == ["Better question", "C"]
        mine = await alice_program.patch(
            f"conversations/{conversation}/messages/{first['id']}", content="Your words, mine"
        )
        assert mine.json()["kind"] == "edited"
        assert await shown() == ["Question", "Your words, mine"]
    assert await Message.objects.acount() == 6
    assert await Run.objects.acount() == 3


@pytest.mark.sqlite
async def test_the_requested_model_answers(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        models = (await alice_program.get("models")).json()["items"]
        assert (models[0]["name"], models[0]["is_default"]) == ("Test", True)
        answer = await send(alice_program, conversation, model=models[0]["id"])
        assert answer.json()["message"]["model"] == "Test"
        assert (await send(alice_program, conversation, model="nonsense")).status_code == 404
