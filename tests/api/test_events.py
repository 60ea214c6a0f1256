"""The events of a conversation as a client reads them: all of them, once, in order, until access ends."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_django.fixtures import Settings

from chatapp.accounts.actions import delete_token
from chatapp.accounts.models import ApiToken, User
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from chatapp.realtime.api import sse
from chatapp.realtime.event_log import read_after
from chatapp.realtime.hub import hub
from tests.api.description import describe_api
from tests.api.program import Answer, Program
from tests.api.running import (
    new_conversation,
    read_all,
    read_until,
    running_service,
    send,
    sent_events,
    wait_for_words,
)
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


def test_the_schema_of_an_event_stream_has_no_type() -> None:
    """Some clients would take the type for that of each event."""
    operations = [each for path in describe_api()["paths"].values() for each in path.values()]
    bodies = [
        body["content"]["text/event-stream"]["schema"]
        for operation in operations
        if isinstance(operation, dict)
        for body in operation.get("responses", {}).values()
        if "text/event-stream" in body.get("content", {})
    ]
    assert len(bodies) > 2
    assert not any("type" in body for body in bodies)


async def events_of(program: Program, conversation: str, **more: object) -> Answer:
    """Return a stream that already listens for events."""
    stream = await program.get(f"conversations/{conversation}/events", **more)
    assert await asyncio.wait_for(stream.chunks.get(), 60) == sse.OPENED
    return stream


async def test_a_stream_replays_the_log_and_continues_live(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        await send(alice_program, conversation, "First")
        stream = await events_of(alice_program, conversation)
        await send(alice_program, conversation, "Second")
        facts = []
        async for event in sent_events(stream):
            if event.id is not None:
                facts.append(event.data)
            if [fact["type"] for fact in facts].count("run.finished") == 2:
                break
        await stream.hang_up()
        assert facts == await in_database(read_after)(conversation, 0)
        assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
        updated = [fact for fact in facts if fact["type"] == "conversation.updated"]
        assert {(fact["title"], fact["model"]) for fact in updated} == {("First", None)}
        assert [fact["conversation"]["last_seq"] for fact in updated] == [fact["seq"] for fact in updated]


async def test_a_reader_continues_after_the_last_event_it_saw(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        await send(alice_program, conversation)
        seen = await read_until(await events_of(alice_program, conversation), "run.started")
        last = seen[-1].id
        by_query = await read_until(
            await events_of(alice_program, conversation, after_seq=last), "run.finished"
        )
        assert by_query[0].id == last + 1
        # Browsers reconnect to the old address and add the header.
        stream = await events_of(
            alice_program, conversation, after_seq=0, headers={"last-event-id": str(last)}
        )
        assert await read_until(stream, "run.finished") == by_query


async def test_a_reader_ahead_of_the_log_gets_a_reset(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        stream = await alice_program.get(f"conversations/{conversation}/events", after_seq=1_000)
        await send(alice_program, conversation)
        events = await read_until(stream, "run.finished")
        assert (events[0].type, events[0].id) == ("reset", 0)
        assert events[1].type == "message.created"


async def test_streams_opened_concurrently_respect_the_connection_limit(
    alice_program: Program, model: ModelConfig, settings: Settings
) -> None:
    settings.CONNECTIONS_PER_USER = 2
    async with running_service():
        conversation = await new_conversation(alice_program)
        path = f"conversations/{conversation}/events"
        streams = await asyncio.gather(*(alice_program.get(path) for _ in range(4)))
        refused = [answer for answer in streams if not answer.is_stream]
        assert [answer.status_code for answer in refused] == [429, 429]
        assert {answer.headers["retry-after"] for answer in refused} == {"5"}
        opened = [answer for answer in streams if answer.is_stream]
        await opened[0].hang_up()
        again = await events_of(alice_program, conversation)
        for stream in (opened[1], again):
            await stream.hang_up()


async def test_a_reader_that_joins_during_an_answer_misses_nothing(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    text = "Some words before, and many more words after you came."
    model_server.script(says(text, hold_after=3))
    async with running_service():
        conversation = await new_conversation(alice_program)
        sending = asyncio.create_task(send(alice_program, conversation))
        await wait_for_words(model_server)
        last_seq = (await alice_program.get(f"conversations/{conversation}")).json()["last_seq"]
        stream = await events_of(alice_program, conversation, after_seq=last_seq)
        model_server.release()
        shown = ""
        for event in await read_until(stream, "run.finished"):
            if event.type in ("text.delta", "message.snapshot"):
                assert event.data["offset"] <= len(shown)
                shown = shown[: event.data["offset"]] + event.data["text"]
        assert shown == text
        assert (await sending).json()["message"]["content"] == text


async def test_all_readers_see_the_same_events(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        streams = [await events_of(alice_program, conversation) for _ in range(5)]
        await send(alice_program, conversation)
        seen = await asyncio.gather(*(read_until(stream, "run.finished") for stream in streams))
        facts = [[event for event in events if event.id is not None] for events in seen]
        assert all(other == facts[0] for other in facts)


async def test_a_stream_shows_only_its_own_conversation(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        watched, other = await new_conversation(alice_program), await new_conversation(alice_program)
        stream = await events_of(alice_program, watched)
        await send(alice_program, other)
        await send(alice_program, watched)
        events = await read_until(stream, "run.finished")
        assert {event.data["conversation_id"] for event in events} == {watched}


async def test_an_idle_stream_has_a_heartbeat(alice_program: Program, settings: Any) -> None:
    settings.SSE_HEARTBEAT_S = 0.05
    async with running_service():
        stream = await events_of(alice_program, await new_conversation(alice_program))
        assert await asyncio.wait_for(stream.chunks.get(), 60) == sse.HEARTBEAT
        assert stream.headers["cache-control"] == "private, no-store, no-transform"
        await stream.hang_up()


async def test_a_stream_ends_when_the_account_is_deactivated(alice_program: Program, alice: User) -> None:
    async with running_service():
        stream = await events_of(alice_program, await new_conversation(alice_program))
        alice.is_active = False
        await alice.asave(update_fields=["is_active"])
        events = await asyncio.wait_for(read_all(stream), 60)
        assert [(event.type, event.data["code"]) for event in events] == [("error", "signed_out")]


async def test_a_stream_ends_when_its_token_is_deleted(
    alice_program: Program, alice: User, settings: Any
) -> None:
    settings.SSE_HEARTBEAT_S = 0.05
    async with running_service():
        stream = await events_of(alice_program, await new_conversation(alice_program))
        token = await ApiToken.objects.aget()
        await in_database(delete_token)(user=alice, token_id=token.pk)
        events = await asyncio.wait_for(read_all(stream), 60)
        assert events[-1].data["code"] == "signed_out"


async def test_a_stream_ends_when_its_conversation_is_deleted(alice_program: Program, settings: Any) -> None:
    settings.SSE_HEARTBEAT_S = 0.05
    async with running_service():
        conversation = await new_conversation(alice_program)
        stream = await events_of(alice_program, conversation)
        assert (await alice_program.delete(f"conversations/{conversation}")).status_code == 204
        events = await asyncio.wait_for(read_all(stream), 60)
        # The heartbeat, which checks the rights, may come before or after the event of the deletion.
        ends = [event for event in events if event.type != "conversation.deleted"]
        assert [(event.type, event.data["code"]) for event in ends] == [("error", "signed_out")]


async def test_deleting_a_conversation_ends_its_run(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Words that nobody will read.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        sending = asyncio.create_task(send(alice_program, conversation))
        await wait_for_words(model_server)
        assert (await alice_program.delete(f"conversations/{conversation}")).status_code == 204
        assert (await sending).status_code == 404
        await asyncio.to_thread(model_server.wait_until, lambda server: "lost" in server.requests[-1].times)


async def test_disconnected_readers_leave_nothing_behind(alice_program: Program) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        streams = [await events_of(alice_program, conversation) for _ in range(3)]
        assert hub.reader_count == 6
        await asyncio.gather(*(stream.hang_up() for stream in streams))
        assert hub.reader_count == 0
        assert sse.active_streams._value.get() == 0


async def test_a_stream_reports_that_the_service_restarts(alice_program: Program) -> None:
    async with running_service():
        stream = await events_of(alice_program, await new_conversation(alice_program))
        await hub.stop()
        events = await asyncio.wait_for(read_all(stream), 60)
        assert [(event.type, event.data["code"]) for event in events] == [("error", "shutting_down")]
