"""The model that answers when none is configured: no language model, and it says so.

Deterministic. It shows streaming, Markdown and what it was given to read, finds words in that, and calls the tool that
a question names. Asked for a summary, as memory.prompts asks, it gives the extractive one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from agents.chat_models.demo_answer import write_answer
from agents.chat_models.demo_plan import write_plan_answer
from agents.chat_models.demo_summary import write_summary
from agents.chat_models.demo_tools import write_tool_call
from agents.chat_models.words import split_words
from agents.types import Finished, ModelItem, ModelRequest, RequestSent, TextDelta
from agents.usage import OutputText, estimate_usage
from agents.wire import write_request
from memory.prompts import CLOSING

DEMO_NAME = "demo"
PACE_S = 0.02


class DemoModel:
    """`pace_s` is the pause between words; 0 in tests. Summaries come at once: nobody watches them."""

    def __init__(
        self, *, pace_s: float = PACE_S, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._pace_s = pace_s
        self._sleep = sleep

    @property
    def name(self) -> str:
        return DEMO_NAME

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        yield RequestSent(request, {"model": DEMO_NAME} | write_request(request))
        if CLOSING in request.messages[0].text:
            text, pace_s = write_summary(request), 0.0
        elif (planned := write_plan_answer(request)) is not None:
            text, pace_s = planned, self._pace_s
        elif (call := write_tool_call(request)) is not None:
            calling = OutputText()
            calling.add(call)
            yield call
            yield Finished("tool_calls", estimate_usage(request, calling))
            return
        else:
            text, pace_s = write_answer(request), self._pace_s
        output = OutputText()
        for word in split_words(text):
            delta = TextDelta(word)
            output.add(delta)
            yield delta
            if pace_s:
                await self._sleep(pace_s)
        yield Finished("stop", estimate_usage(request, output))
