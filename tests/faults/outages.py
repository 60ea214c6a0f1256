"""Outages of an installation while its users continue: killed, stopped and frozen processes, a full disk."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.reliability.installation import LEASE_S, Installation, kill_group
from tests.servers.postgres import Postgres
from tests.servers.service import OwnProcess

PAUSE_S = 4.0
DATABASE_AWAY_S = 10.0
"""Longer than a request waits for the database, so that requests are refused meanwhile."""


@dataclass
class Outages:
    """Each outage returns when everything runs again. `pause_s` is how long most of them last."""

    installation: Installation
    postgres: Postgres | None = None
    pause_s: float = PAUSE_S
    seed: int = 0

    IN_ONE_PROCESS: ClassVar = ("disk full", "the clock an hour ahead, and back")
    """Outages that affect several processes in the same way as one."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    @property
    def kinds(self) -> dict[str, Callable[[], None]]:
        """The outages that this installation can have, by name."""
        everywhere = {
            "kill -9 of a web process": self.kill_web,
            "SIGTERM to a web process": self.drain_web,
            "a web process frozen for longer than its lease": self.freeze_web,
            "disk full": self.fill_disk,
            "the clock an hour ahead, and back": self.move_clock,
        }
        if not self.installation.is_production:
            return {**everywhere, "database locked": self.lock_database}
        del everywhere["SIGTERM to a web process"]
        return {
            **everywhere,
            "a rolling restart": self.restart_in_turn,
            "kill -9 of the worker": self.kill_worker,
            "the worker frozen": self.freeze_worker,
            "Redis killed and back": self.kill_redis,
            "Redis frozen": self.freeze_redis,
            "PostgreSQL stopped and back": self.stop_postgres,
            "PostgreSQL frozen": self.freeze_postgres,
        }

    # --- processes

    def _web(self) -> OwnProcess:
        return self.random.choice(self.installation.webs)

    def _worker(self) -> OwnProcess:
        assert self.installation.worker
        return self.installation.worker

    def kill_web(self) -> None:
        kill_group(self._web())
        self.installation.start()

    def drain_web(self) -> None:
        code = self._web().stop()
        assert code == 0, f"the web process ended with {code}"
        self.installation.start()

    def freeze_web(self) -> None:
        self._freeze(self._web(), LEASE_S * 1.5)

    def kill_worker(self) -> None:
        kill_group(self._worker())
        self.installation.start()

    def restart_in_turn(self) -> None:
        """Restart both web processes and the worker one after another, while the others and a second worker run."""
        worker, web = self._worker(), self.installation.first
        second = web.companion("second-worker", *worker.arguments, "--hostname=second@%h")
        second.launch()
        try:
            second.wait_for_output(r"ready\.")
            for process in (*self.installation.webs, worker):
                code = process.stop()
                assert code == 0, f"{process.arguments} ended with {code}"
                self.installation.start()
            assert second.stop() == 0
        finally:
            kill_group(second)

    def freeze_worker(self) -> None:
        self._freeze(self._worker(), self.pause_s)

    def _freeze(self, process: OwnProcess, seconds: float) -> None:
        assert process.process
        os.killpg(process.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.killpg(process.process.pid, signal.SIGCONT)

    # --- databases, disk and clock

    def kill_redis(self) -> None:
        assert self.installation.redis
        self.installation.redis.kill()
        time.sleep(self.pause_s)
        self.installation.redis.start_again()

    def freeze_redis(self) -> None:
        assert self.installation.redis
        assert self.installation.redis.process
        self.installation.redis.process.send_signal(signal.SIGSTOP)
        time.sleep(self.pause_s)
        self.installation.redis.process.send_signal(signal.SIGCONT)

    def stop_postgres(self) -> None:
        assert self.postgres
        with self.postgres.ended():
            time.sleep(DATABASE_AWAY_S)

    def freeze_postgres(self) -> None:
        assert self.postgres
        with self.postgres.frozen():
            time.sleep(DATABASE_AWAY_S)

    def lock_database(self) -> None:
        path = Path(self.installation.env["DATA_DIR"]) / "palimpsest.sqlite3"
        lock = sqlite3.connect(path, timeout=20, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        time.sleep(self.pause_s)
        lock.execute("COMMIT")
        lock.close()

    def fill_disk(self) -> None:
        with no_room(self.installation.processes):
            time.sleep(self.pause_s)

    def move_clock(self) -> None:
        """Move the service's clock an hour ahead and back, through the file that `tests.servers.moved_clock` reads."""
        file = Path(self.installation.env["CLOCK_FILE"])
        for seconds in ("3600", "0"):
            file.write_text(seconds)
            time.sleep(self.pause_s)


@contextmanager
def no_room(processes: Iterable[OwnProcess]) -> Iterator[None]:
    """Let no file of the processes grow, so that each write fails as on a full disk. This needs no special rights."""
    pids = [pid for process in processes for pid in _group(process)]
    limits = [(pid, resource.prlimit(pid, resource.RLIMIT_FSIZE)) for pid in pids]
    for pid, (_, hard) in limits:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, limit in limits:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)


def _group(process: OwnProcess) -> list[int]:
    """Return the ids of the process and its children, such as a worker's."""
    if process.process is None or not process.is_running:
        return []
    leader = process.process.pid
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getpgid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except ProcessLookupError:
                continue
    return found
