"""A conversation over the REST API, and the requests that the model received for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import Q

from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.models import Compaction
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.realtime.event_log import read_after
from chatapp.runs import runner
from tests.api.program import Program
from tests.api.running import new_conversation, running_service
from tests.servers.openai_server import ModelServer
from tests.servers.waiting import wait_for


@dataclass
class Talk:
    program: Program
    id: str

    async def ask(self, content: str, status: int = 200, **fields: Any) -> dict[str, Any]:
        """Send a message, wait until no run is active, and return the response."""
        answer = await self.program.post(f"conversations/{self.id}/messages", content=content, **fields)
        assert answer.status_code == status, answer.content
        await settle()
        body: dict[str, Any] = answer.json()
        return body

    async def post(self, path: str, status: int = 200, **fields: Any) -> dict[str, Any]:
        answer = await self.program.post(f"conversations/{self.id}/{path}", **fields)
        assert answer.status_code == status, answer.content
        body: dict[str, Any] = answer.json()
        return body

    async def inspect(self, query: str = "", **fields: Any) -> dict[str, Any]:
        return await self.post("context", query=query, **fields)

    async def compactions(self, *statuses: str) -> list[dict[str, Any]]:
        answer = await self.program.get(f"conversations/{self.id}/compactions")
        rows = answer.json()["items"]
        return [row for row in rows if not statuses or row["status"] in statuses]

    async def events(self, *types: str) -> list[dict[str, Any]]:
        events = await in_database(read_after)(UUID(self.id), 0)
        return [event for event in events if not types or event["type"] in types]


async def settle() -> None:
    """Wait until no run of this process is active."""
    await asyncio.to_thread(wait_for, lambda: not runner.active_count(), what="every turn is over")


@asynccontextmanager
async def talking(
    program: Program, history: Sequence[dict[str, Any]] = (), **fields: Any
) -> AsyncIterator[Talk]:
    """Yield a new conversation in a service without a worker. Call `work` to do the worker's part."""
    async with running_service():
        if not history:
            yield Talk(program, await new_conversation(program, **fields))
            return
        imported = await program.post("conversations/import", messages=list(history))
        assert imported.status_code == 201, imported.content
        talk = Talk(program, str(imported.json()["id"]))
        if fields:
            changed = await program.patch(f"conversations/{talk.id}", **fields)
            assert changed.status_code == 200, changed.content
        yield talk


async def work() -> int:
    """Run the worker's compactions one by one until none is left. Return how many."""
    done = 0
    while (row := await sync_to_async(_next_row)()) is not None:
        await in_database(compaction_tasks.compact)(str(row.pk))
        done += 1
    return done


def _next_row() -> Compaction | None:
    free = Q(status=Compaction.Status.PENDING)
    free |= Q(status=Compaction.Status.RUNNING, lease_expires_at__lt=clock.now())
    return Compaction.objects.filter(free).order_by("created_at").first()


async def until(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    """Poll until `look` returns `wanted`, because other threads change the result."""
    async with asyncio.timeout(120):
        while await look() != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def last_chat(server: ModelServer) -> list[dict[str, Any]]:
    """Return the messages of the newest chat request, which excludes summary requests."""
    return server.requests_of("chat")[-1].messages


def words(count: int, about: str = "") -> str:
    """Return a text of about `count` tokens."""
    return f"{about} " + " ".join(f"word{number % 89}" for number in range(count * 2 // 3))
