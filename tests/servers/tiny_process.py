"""The server with the tiny application behind it, as a process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.servers.service import OwnProcess

ADDRESS = r"http://127\.0\.0\.1:(\d+)/"


def start_tiny(log: Path, *proxies: str, **limits: float) -> tuple[OwnProcess, int]:
    """Start the server. Return the process, which the caller must kill, and its port."""
    arguments = ["-m", "tests.servers.tiny_application", "0", json.dumps(limits), *proxies]
    process = OwnProcess(arguments, log)
    process.launch()
    return process, int(process.wait_for_output(ADDRESS).group(1))
