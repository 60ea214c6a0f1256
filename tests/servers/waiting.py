"""What the servers share: finding a package's folder, reserving ports, waiting for a condition with a timeout."""

from __future__ import annotations

import fcntl
import importlib.util
import random
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

T = TypeVar("T")
PATIENCE_S = 120.0
"""How long tests wait for something that must happen, on a busy machine. They continue as soon as it happens."""
PORTS = (20_000, 32_000)
RESERVED_PORTS = Path(tempfile.gettempdir()) / "palimpsest-ports"
HELD: list[TextIO] = []
"""The locks of the ports that this process has reserved."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.25


def package_folder(name: str) -> Path:
    """Return the folder of a package without importing it, or a folder that does not exist if it is not installed."""
    spec = importlib.util.find_spec(name)
    return Path(next(iter(spec.submodule_search_locations or []), "")) if spec else Path("/nonexistent")


def wait_for(
    look: Callable[[], T], *, what: str, timeout_s: float = PATIENCE_S, explain: Callable[[], str] = str
) -> T:
    """Return the first true result of `look`. After the timeout, fail with `explain()`."""
    began = time.monotonic()
    while not (answer := look()):
        waited_s = time.monotonic() - began
        if waited_s > timeout_s:
            raise AssertionError(f"{what}: not within {timeout_s:g} s\n{explain()}")
        # Pause longer the longer the wait: frequent checks would slow down the work that is awaited.
        time.sleep(min(max(FIRST_PAUSE_S, waited_s / 10), LONGEST_PAUSE_S))
    return answer


def reserve_port() -> int:
    """Return a port that is free and that no other test run takes while this process lives.

    A restarted server must find its port free, so PORTS lies outside the range that the system assigns from.
    """
    RESERVED_PORTS.mkdir(exist_ok=True)
    while True:
        port = random.randrange(*PORTS)
        lock = (RESERVED_PORTS / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        HELD.append(lock)
        if not accepts_connections(port):
            return port


def accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
