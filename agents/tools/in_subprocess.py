"""Run a module of this package on the bytes of a file in a subprocess, so that a hostile file can hang or exhaust only
that process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.tools.protocol import ToolFailure

CPU_S = 20
MEMORY_BYTES = 1 << 30
_ROOT = Path(__file__).resolve().parents[2]


async def read_in_subprocess(
    module: str, argument: str, data: bytes, *, what: str, memory_bytes: int = MEMORY_BYTES
) -> dict[str, Any]:
    """Return the module's result for the file. Raise ToolFailure, which calls the file `what`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, argument, str(memory_bytes)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=_ROOT,
        # The environment of the service contains keys.
        env={},
    )
    try:
        written, _ = await process.communicate(data)
    finally:
        # After a cancellation, e.g. by the tool's timeout, nothing else would end the process.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        # A killed process has written nothing, or only a part.
        result: dict[str, Any] = json.loads(written)
    except ValueError:
        raise ToolFailure(f"This {what} cannot be read; it is damaged, or too large.") from None
    if "problem" in result:
        raise ToolFailure(result["problem"])
    return result


def write_result(extract: Callable[[bytes, str], dict[str, Any]]) -> None:
    """Run inside the subprocess: write the result of `extract` for the file and the argument as one line of JSON."""
    argument, memory_bytes = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    print(json.dumps(extract(sys.stdin.buffer.read(), argument)))
