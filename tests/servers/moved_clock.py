"""A tool that is never called: importing it shifts the clock of the service by the number of seconds in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from agents.tools.protocol import ToolCaller, ToolOutput, ToolTraits
from agents.types import ToolSpec
from chatapp.operations import clock

FILE = Path(os.environ["CLOCK_FILE"])


def moved_now() -> datetime:
    return timezone.now() + timedelta(seconds=float(FILE.read_text() or 0))


clock.now = moved_now


class MovedClock:
    spec = ToolSpec("moved_clock", "Does nothing.", {"type": "object"})
    traits = ToolTraits()

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        return ToolOutput("")


moved_clock = MovedClock()
