"""One model call that stores nothing but its row in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from django.conf import settings

from agents.chat_models.usage import CallMeter
from agents.errors import ModelError, retry_pause
from agents.loop.tool_calls import CallCollector
from agents.types import (
    ChatModel,
    Finished,
    ModelItem,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.models import User
from chatapp.operations.database.threads import retry_on_outage
from chatapp.providers.actions import record_background_calls
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.usage import priced_call

# A retry cannot take back what a reader has seen.
SHOWN = (TextDelta, ReasoningDelta, ToolCallDelta)
TOO_LATE = "The model did not finish its answer in time."


class ModelCall:
    """A model call in its own task, which ends with its reader. Its usage is recorded however it ends."""

    def __init__(self, user: User, config: ModelConfig, request: ModelRequest) -> None:
        self.user = user
        self.config = config
        self.request = request
        # The queue is unbounded, because the model bounds the answer (`MAX_ANSWER_BYTES`).
        self._items: asyncio.Queue[ModelItem | BaseException] = asyncio.Queue()

    async def items(self) -> AsyncGenerator[ModelItem, None]:
        """Yield the model's items, ended by `Finished`. Raise ModelError."""
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
            # Cancel the task if the reader hangs up, too. It records its usage before it ends.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        meter = CallMeter()
        finished: ModelItem | BaseException
        try:
            spender = await retry_on_outage(spender_of)(self.user.pk)
            model = chat_model_for(self.config, spender)
            # The model's own timeouts limit the pauses within an answer, not its total duration.
            async with asyncio.timeout(settings.ANSWER_TIME_LIMIT_S):
                finished = await self._ask(model, meter)
        except TimeoutError:
            finished = ModelError("timeout", TOO_LATE)
        # The text generated until then has to be paid for.
        except asyncio.CancelledError:
            await self._record(meter)
            raise
        # `items` raises the error, because nobody awaits the result of this task.
        except Exception as error:
            finished = error
        # Record the call before reporting its end, so that a client that reads the usage next finds it.
        try:
            await self._record(meter)
        # If the account is gone or the database stays away, report it, or the reader would wait for ever.
        except Exception as error:
            finished = error
        self._items.put_nowait(finished)

    async def _ask(self, model: ChatModel, meter: CallMeter) -> Finished:
        """Pass on the model's items and return the last one. Retry only if nothing was shown yet."""
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
                            # Some servers give every call the same index, by which clients distinguish calls.
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
        """Record the call. An aborted call counts with an estimate of its tokens; a refused call costs nothing."""
        usage = meter.read(self.request)
        if usage is None:
            return
        call = priced_call(self.config, usage, "chat")
        # A cancellation must not lose the row.
        writing = asyncio.ensure_future(retry_on_outage(record_background_calls)(self.user, None, [call]))
        await asyncio.shield(writing)
