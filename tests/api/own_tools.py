"""An operator's own tools for EXTRA_TOOLS, in the test's process so that the test can inspect them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.test import override_settings

from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage, ToolOutput, ToolTraits
from agents.types import ToolSpec


def say(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("say", "found"))


@dataclass
class OwnTool:
    name: str
    traits: ToolTraits
    calls: list[tuple[Mapping[str, Any], ToolCaller]] = field(default_factory=list)
    answer: Callable[[Mapping[str, Any]], str] = say
    images: tuple[ToolImage, ...] = ()
    release: asyncio.Event | None = None
    """Created by a test on its own event loop; the tool waits for it."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, f"{self.name} of the tests.", {"type": "object"})

    def forget(self) -> None:
        self.calls.clear()
        self.release, self.answer, self.images = None, say, ()

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        self.calls.append((arguments, caller))
        if self.release is not None:
            await self.release.wait()
        if arguments.get("fail"):
            raise ToolFailure("It is closed today.")
        return ToolOutput(self.answer(arguments), self.images)


look_up = OwnTool("look_up", ToolTraits())
send_mail = OwnTool("send_mail", ToolTraits(is_idempotent=False))
pay = OwnTool("pay", ToolTraits(is_idempotent=False, needs_consent=True))
audit = OwnTool("audit", ToolTraits(is_idempotent=False, timeout_s=7_200))
ALL = (look_up, send_mail, pay, audit)
NAMES = [f"{__name__}.{tool.name}" for tool in ALL]


@contextmanager
def at_hand(*defaults: str) -> Iterator[None]:
    """Register all of these tools, and enable `defaults` by default."""
    for tool in ALL:
        tool.forget()
    with override_settings(EXTRA_TOOLS=NAMES, DEFAULT_TOOLS=list(defaults)):
        yield
