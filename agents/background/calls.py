"""Ask a model one question in the background: no tools, no loop, few retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from agents.chat_models.error_mapping import describe_error
from agents.chat_models.usage import CallMeter
from agents.errors import ModelError, retry_pause
from agents.text import storable_text
from agents.types import ChatModel, Finished, ModelRequest, TextDelta, TokenUsage

CALL_TIMEOUT_S = 120.0

Sleep = Callable[[float], Awaitable[None]]


class BackgroundCaller:
    """Asks one model. `usages` has one entry for each call, including failed ones that cost something.

    A caller that must count them even if it is cancelled passes its own list.
    """

    def __init__(
        self,
        model: ChatModel,
        timeout_s: float = CALL_TIMEOUT_S,
        sleep: Sleep = asyncio.sleep,
        *,
        retries: bool = True,
        usages: list[TokenUsage] | None = None,
    ) -> None:
        self.usages: list[TokenUsage] = [] if usages is None else usages
        self.last_reason: str | None = None
        """The finish reason of the last call: `stop`, `length`, …"""
        self._model = model
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._may_retry = retries
        self._repeated: list[ModelError] = []

    async def ask(self, request: ModelRequest) -> str:
        """Return the whole answer. Raise ModelError.

        All questions together share the retries of a single one.
        """
        while True:
            try:
                return await self._call(request)
            except ModelError as error:
                pause_s = retry_pause(error, self._repeated) if self._may_retry else None
                if pause_s is None:
                    raise
                self._repeated.append(error)
            await self._sleep(pause_s)

    async def _call(self, request: ModelRequest) -> str:
        pieces: list[str] = []
        meter = CallMeter()
        try:
            # Close the generator: an abandoned one keeps its connection until it is garbage-collected.
            async with asyncio.timeout(self._timeout_s), aclosing(self._model.stream(request)) as items:
                async for item in items:
                    meter.add(item)
                    if isinstance(item, TextDelta):
                        pieces.append(item.text)
                    elif isinstance(item, Finished):
                        self.last_reason = item.reason
                        if item.reason == "bound":
                            raise describe_error("bound")
        except TimeoutError as error:
            raise ModelError("timeout", "The model took too long.", detail="it took too long") from error
        except ModelError as error:
            meter.fail(error)
            raise
        finally:
            usage = meter.read(request)
            if usage is not None:
                self.usages.append(usage)
        return storable_text("".join(pieces))
