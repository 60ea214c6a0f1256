"""A tool for the current date and time in the user's time zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.protocol import ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import ToolSpec


class ClockPort(Protocol):
    def now(self) -> datetime: ...

    async def time_zone_of(self, caller: ToolCaller) -> str: ...


class ClockArguments(Arguments):
    time_zone: str = Field(
        "", max_length=64, description="Such as Europe/Berlin; leave it out for the user's own."
    )


@dataclass(frozen=True, slots=True)
class Clock:
    port: ClockPort

    spec: ClassVar = ToolSpec(
        "clock", "The current date, weekday, time and time zone of the user.", schema_of(ClockArguments)
    )
    traits: ClassVar = ToolTraits(timeout_s=5.0)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        name = read_arguments(ClockArguments, arguments).time_zone or await self.port.time_zone_of(caller)
        try:
            # A name that is a path, e.g. `../x`, raises ValueError.
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ToolFailure(f"There is no time zone {name}; name one such as Europe/Berlin.") from None
        moment = self.port.now().astimezone(zone)
        return ToolOutput(f"{moment:%A, %Y-%m-%d %H:%M:%S} in {name} (UTC{moment:%z}, week {moment:%V})")
