"""Runs a module of this package on the bytes of a file in a process of its own: what hangs or swells on a hostile file
is that process."""

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
    """Return what the module tells of the file. Raise ToolFailure, which names the file as `what`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, argument, str(memory_bytes)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=_ROOT,
        # The environment of the service holds keys.
        env={},
    )
    try:
        written, _ = await process.communicate(data)
    finally:
        # Cancelled, as by the tool's time limit: nothing else would end it.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        # A process that was killed has written nothing, or half.
        result: dict[str, Any] = json.loads(written)
    except ValueError:
        raise ToolFailure(f"This {what} cannot be read; it is damaged, or too large.") from None
    if "problem" in result:
        raise ToolFailure(result["problem"])
    return result


def write_result(extract: Callable[[bytes, str], dict[str, Any]]) -> None:
    """Be that process: write what `extract` returns for the file and the argument, as one line of JSON."""
    argument, memory_bytes = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    print(json.dumps(extract(sys.stdin.buffer.read(), argument)))
