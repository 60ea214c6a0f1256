"""A service inside the test's event loop, and its event streams as a client reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chatapp.operations.serving import lifecycle
from chatapp.realtime.hub import hub
from chatapp.runs import loops
from tests.api.program import Answer, Program
from tests.servers.openai_server import ModelServer


@asynccontextmanager
async def running_service() -> AsyncIterator[None]:
    await lifecycle.start()
    try:
        yield
        assert hub.reader_count == 0, "a reader was left behind"
    finally:
        await loops.drain(timeout_s=60)
        await lifecycle.stop()


@dataclass(frozen=True)
class Sent:
    """One server-sent event."""

    type: str
    id: int | None
    data: dict[str, Any]


async def sent_events(answer: Answer) -> AsyncIterator[Sent]:
    """Yield the events until the server ends the stream. Skip comments."""
    assert answer.is_stream, answer.content
    rest = ""
    async for chunk in answer.parts():
        rest += chunk.decode()
        *blocks, rest = rest.split("\n\n")
        for block in blocks:
            if not block.startswith(":"):
                yield parse_block(block)
    assert not rest


def parse_block(block: str) -> Sent:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    return Sent(fields["event"], int(fields["id"]) if "id" in fields else None, json.loads(fields["data"]))


async def read_all(answer: Answer) -> list[Sent]:
    return [event async for event in sent_events(answer)]


async def read_until(answer: Answer, type: str) -> list[Sent]:
    """Return all events up to the first of this type, then disconnect."""
    events: list[Sent] = []
    async for event in sent_events(answer):
        events.append(event)
        if event.type == type:
            break
    await answer.hang_up()
    assert type in {event.type for event in events}, f"the stream ended without {type}"
    return events


async def wait_for_words(server: ModelServer, request: int = 1) -> None:
    """Wait until the model has begun its latest answer, which must be the answer to `request` or a later one."""
    await asyncio.to_thread(
        server.wait_until,
        lambda server: len(server.requests) >= request and "first_token" in server.requests[-1].times,
    )


async def new_conversation(program: Program, **fields: Any) -> str:
    answer = await program.post("conversations", **fields)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


async def send(program: Program, conversation_id: str, content: Any = "Hello", **fields: Any) -> Answer:
    return await program.post(f"conversations/{conversation_id}/messages", content=content, **fields)


async def wait_for_end(program: Program, run_id: str) -> dict[str, Any]:
    """Wait for the end of the run through the events of its conversation, as a client would, and return the run."""
    run = (await program.get(f"runs/{run_id}")).json()
    if run["status"] in ("queued", "running"):
        await read_until(await program.get(f"conversations/{run['conversation_id']}/events"), "run.finished")
        run = (await program.get(f"runs/{run_id}")).json()
    return dict(run)
