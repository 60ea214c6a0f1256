"""A whole installation with its users: one embedded process, or two web processes, a worker and beat."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from tests.reliability.scripting import OUTPUT, WINDOW
from tests.servers.people import ALICE, CHARLIE, LEAVERS
from tests.servers.redis import Redis
from tests.servers.service import OwnProcess, Service
from tests.servers.waiting import PATIENCE_S

PEOPLE = (ALICE, CHARLIE, *LEAVERS)
MODEL_TIMEOUT_S = 5
"""Long enough for a busy machine, on which a timeout would cause a retry that the tests do not expect."""
LEASE_S = 8
"""Long enough that a live process keeps its runs even if a busy machine delays it for seconds."""
SWEEP_S = LEASE_S / 3
CHECK_S = 3
DRAIN_S = 4


@dataclass
class Installation:
    """`first` and `second` are web processes, and the same one in the embedded installation."""

    name: str
    env: dict[str, str]
    folder: Path
    tokens: dict[str, str] = field(default_factory=dict)
    redis: Redis | None = None
    webs: list[Service] = field(default_factory=list)
    worker: OwnProcess | None = None
    beat: OwnProcess | None = None

    @property
    def is_production(self) -> bool:
        return self.redis is not None

    @property
    def first(self) -> Service:
        return self.webs[0]

    @property
    def second(self) -> Service:
        return self.webs[-1]

    @property
    def processes(self) -> list[OwnProcess]:
        return [process for process in (*self.webs, self.worker, self.beat) if process is not None]

    def start(self) -> Installation:
        if not self.webs:
            self._lay_out()
        companions = []
        for process, ready in ((self.worker, r"ready\."), (self.beat, r"beat: Starting")):
            if process is not None and not process.is_running:
                companions.append((process, ready, len(process.output())))
                process.launch()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda start: start(), [web.start for web in self.webs if not web.is_running]))
        for process, ready, printed in companions:
            process.wait_for_output(ready, since=printed)
        return self

    def _lay_out(self) -> None:
        for number in range(2 if self.is_production else 1):
            log = self.folder / f"{self.name}-web-{number}.log"
            self.webs.append(Service([], log, self.env, is_forked=True))
        if self.is_production:
            celery = ("-m", "celery", "-A", "chatapp")
            self.worker = self.first.companion("worker", *celery, "worker", "--concurrency=2")
            self.beat = self.first.companion("beat", *celery, "beat")

    def stop(self) -> None:
        for process in reversed(self.processes):
            kill_group(process)

    def client(self, service: Service | None = None, person: str = PEOPLE[0]) -> httpx2.Client:
        return (service or self.first).client(self.tokens[person])

    def kill_workers(self) -> None:
        """Kill the processes that execute tasks, like a power cut. Embedded, that is the only process."""
        kill_group(self.worker or self.first)

    def output(self) -> str:
        return "\n".join(f"--- {process.log.name}\n{process.output()[-6000:]}" for process in self.processes)


def kill_group(process: OwnProcess) -> None:
    """Kill the process and its children, such as a worker's, with SIGKILL, so that no handler runs."""
    if process.process is not None and process.is_running:
        os.killpg(process.process.pid, signal.SIGKILL)
        process.process.wait(PATIENCE_S)


def common_env(base_url: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": base_url,
        "LLM_MODEL": "test-model",
        "LLM_CONTEXT_SIZE": str(WINDOW),
        "LLM_MAX_OUTPUT_TOKENS": str(OUTPUT),
        "MODEL_CONNECT_TIMEOUT_S": "2",
        "MODEL_FIRST_TOKEN_TIMEOUT_S": str(MODEL_TIMEOUT_S),
        "MODEL_STALL_TIMEOUT_S": str(MODEL_TIMEOUT_S),
        "MESSAGES_PER_MINUTE": "100000",
        "DRAIN_TIMEOUT_S": str(DRAIN_S),
        "LEASE_S": str(LEASE_S),
        "SSE_HEARTBEAT_S": str(CHECK_S),
        "SOCKET_CHECK_S": str(CHECK_S),
    }
