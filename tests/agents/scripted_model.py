"""A model for tests that plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agents.chat_models.demo_answer import split_words
from agents.chat_models.usage import OutputText, estimate_usage
from agents.errors import ModelError
from agents.types import Finished, FinishReason, ModelItem, ModelRequest, TextDelta, TokenUsage


@dataclass(frozen=True, slots=True)
class Said:
    """One answer: waits for `waits_for`, yields `items`, then `text` word by word, then raises `error`."""

    text: str = ""
    items: tuple[ModelItem, ...] = ()
    error: ModelError | None = None
    reason: FinishReason = "stop"
    usage: TokenUsage | None = None
    waits_for: asyncio.Event | None = None


@dataclass
class ScriptedModel:
    """Plays `script` in order, then repeats `default`. Records `requests`."""

    script: Sequence[Said | str | ModelError] = ()
    default: Said | str | ModelError = "Understood."
    name: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        turn = len(self.requests)
        self.requests.append(request)
        said = _as_said(self.script[turn] if turn < len(self.script) else self.default)
        if said.waits_for is not None:
            await said.waits_for.wait()
        output = OutputText()
        for item in (*said.items, *(TextDelta(word) for word in split_words(said.text))):
            output.add(item)
            yield item
        if said.error is not None:
            raise said.error
        yield Finished(said.reason, said.usage or estimate_usage(request, output))


def _as_said(step: Said | str | ModelError) -> Said:
    if isinstance(step, str):
        return Said(step)
    return Said(error=step) if isinstance(step, ModelError) else step
