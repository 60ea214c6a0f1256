"""A chat between alice and a scripted model inside the test process. The test does the worker's part itself."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.test import override_settings

from chatapp.accounts.actions import create_token
from chatapp.accounts.models import User
from chatapp.compaction.compactor import compact
from chatapp.compaction.models import Compaction
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from tests.acceptance.conversations import long_history
from tests.api.program import Program
from tests.api.running import running_service, send
from tests.servers.openai_server import ModelServer


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test on its own event loop, as the server does: under `async_to_sync` all requests would share a thread."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


@dataclass(frozen=True)
class Chat:
    program: Program
    server: ModelServer
    conversation: str

    async def ask(self, text: str = "And now?") -> dict[str, Any]:
        """Send a message and return the run's complete answer."""
        answer = await send(self.program, self.conversation, text)
        assert answer.status_code == 200, answer.content
        return dict(answer.json())

    async def see(self, query: str = "And now?", **options: Any) -> dict[str, Any]:
        """Return the inspector's response."""
        answer = await self.program.post(f"conversations/{self.conversation}/context", query=query, **options)
        assert answer.status_code == 200, answer.content
        return dict(answer.json())

    async def model_input(self, query: str = "And now?", **options: Any) -> bytes:
        return json.dumps((await self.see(query, **options))["messages"]).encode()

    async def post(self, path: str, **fields: Any) -> Any:
        return await self.program.post(f"conversations/{self.conversation}/{path}", **fields)

    async def compact(self, **wanted: Any) -> dict[str, Any]:
        """Request a compaction as a user, and do the worker's part. Return the compaction."""
        asked = await self.post("compact", **wanted)
        assert asked.status_code == 200, asked.content
        return await self.work(asked.json()["id"])

    async def work(self, compaction_id: str = "") -> dict[str, Any]:
        """Do the worker's part of a compaction, by default the pending one. Return the compaction."""
        if not compaction_id:
            waiting = await Compaction.objects.aget(
                conversation_id=self.conversation, status=Compaction.Status.PENDING
            )
            compaction_id = str(waiting.pk)
        await in_database(compact)(UUID(compaction_id))
        return next(row for row in await self.compactions() if row["id"] == compaction_id)

    async def compactions(self) -> list[dict[str, Any]]:
        answer = await self.program.get(f"conversations/{self.conversation}/compactions")
        return list(answer.json()["items"])


@asynccontextmanager
async def chatting(
    user: User, *, count: int = 60, padding: int = 12, server: ModelServer | None = None, **model: Any
) -> AsyncIterator[Chat]:
    """Yield a chat of `count` messages with the default model, without tools. `server` and `model` configure it."""
    with server or ModelServer() as answering, override_settings(DEFAULT_TOOLS=[]):
        await in_database(make_model)(answering, **{"name": "Main", "is_default": True} | model)
        _, secret = await in_database(create_token)(user=user, name="test", scopes=["chat", "read", "memory"])
        program = Program({"authorization": f"Bearer {secret}"})
        async with running_service():
            made = await program.post("conversations/import", messages=long_history(count, padding))
            assert made.status_code == 201, made.content
            yield Chat(program, answering, str(made.json()["id"]))


def make_model(server: ModelServer, **fields: Any) -> ModelConfig:
    defaults = {"model_id": "test-model", "context_size": 32_000, "max_output_tokens": 4_000}
    return ModelConfig.objects.create(base_url=server.base_url, **defaults | fields)
