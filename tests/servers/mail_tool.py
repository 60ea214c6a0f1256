"""A slow tool with a side effect: each call appends a line to a file and returns when the test creates another file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.tools.protocol import ToolCaller, ToolOutput, ToolTraits
from agents.types import ToolSpec


class MailTool:
    spec = ToolSpec("send_mail", "Sends a mail.", {"type": "object"})
    traits = ToolTraits(is_idempotent=False)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        folder = Path(os.environ["MAIL_FOLDER"])
        with (folder / "sent").open("a") as sent:
            sent.write(f"{arguments['to']}\n")
        while not (folder / "go-on").exists():  # noqa: ASYNC110 - another process makes the file
            await asyncio.sleep(0.02)
        return ToolOutput("Sent.")


send_mail = MailTool()
