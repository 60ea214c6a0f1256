"""One model call that stores nothing but its row in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from django.conf import settings

from agents.errors import ModelError, retry_pause
from agents.tool_calls import CallCollector
from agents.types import (
    ChatModel,
    Finished,
    ModelItem,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from agents.usage import CallMeter
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.models import User
from chatapp.operations.database import persistently
from chatapp.providers.actions import record_background_calls
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.usage import priced_call

# What a reader has seen cannot be taken back by another attempt.
SHOWN = (TextDelta, ReasoningDelta, ToolCallDelta)
TOO_LATE = "The model did not finish its answer in time."


class ModelCall:
    """A call in a task of its own, which ends with its reader. What it took is in the ledger, however it ends."""

    def __init__(self, user: User, config: ModelConfig, request: ModelRequest) -> None:
        self.user = user
        self.config = config
        self.request = request
        # Unbounded here: an answer is bounded by its model (`MAX_ANSWER_BYTES`).
        self._items: asyncio.Queue[ModelItem | BaseException] = asyncio.Queue()

    async def items(self) -> AsyncGenerator[ModelItem, None]:
        """Yield what the model says, ended by `Finished`. Raise ModelError."""
        task = asyncio.get_running_loop().create_task(self._run())
        try:
            while True:
                item = await self._items.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, Finished):
                    return
        finally:
            # Also where the reader hangs up; the task has recorded what was spent when it is over.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        meter = CallMeter()
        finished: ModelItem | BaseException
        try:
            spender = await persistently(spender_of)(self.user.pk)
            model = chat_model_for(self.config, spender)
            # The model's own time-outs are for the pauses of an answer, and not for all of it.
            async with asyncio.timeout(settings.ANSWER_TIME_LIMIT_S):
                finished = await self._ask(model, meter)
        except TimeoutError:
            finished = ModelError("timeout", TOO_LATE)
        # What was written until then has to be paid for.
        except asyncio.CancelledError:
            await self._record(meter)
            raise
        # Raised by `items`: nobody looks at the result of this task.
        except Exception as error:
            finished = error
        # Before the end is told, so that whoever reads the usage next finds the call.
        try:
            await self._record(meter)
        # The account is gone, or the database away for long: whoever reads would wait for ever.
        except Exception as error:
            finished = error
        self._items.put_nowait(finished)

    async def _ask(self, model: ChatModel, meter: CallMeter) -> Finished:
        """Pass on what the model says, and return how it ended. What was shown is not asked for again."""
        repeated: list[ModelError] = []
        while True:
            has_shown = False
            calls = CallCollector()
            try:
                async with aclosing(model.stream(self.request)) as items:
                    async for item in items:
                        meter.add(item)
                        if isinstance(item, Finished):
                            return item
                        if isinstance(item, ToolCallDelta):
                            # Some servers give every call the same index; clients tell calls apart by it.
                            item = replace(item, index=calls.add(item))
                        if isinstance(item, SHOWN):
                            has_shown = True
                            self._items.put_nowait(item)
                raise ModelError("bad_response", "The model ended without an answer.")
            except ModelError as error:
                meter.fail(error)
                pause_s = retry_pause(error, repeated)
                if has_shown or pause_s is None:
                    raise
                repeated.append(error)
            await asyncio.sleep(pause_s)

    async def _record(self, meter: CallMeter) -> None:
        """Count the call, one that broke off by what it read and wrote; a refused one cost nothing."""
        usage = meter.read(self.request)
        if usage is None:
            return
        call = priced_call(self.config, usage, "chat")
        # A cancellation meanwhile must not lose the row.
        writing = asyncio.ensure_future(persistently(record_background_calls)(self.user, None, [call]))
        await asyncio.shield(writing)
