"""A stage for measurements: the scripted model server and the service, each in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2

from benchmarks import context_load
from tests.environment import ROOT, clean_environment
from tests.servers.postgres import Postgres
from tests.servers.service import Service, run_manage

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# Rows for a load: users, tokens and conversations, by the actions of the service itself.
PREPARE = """
import json, sys
from chatapp.operations import clock
from chatapp.accounts.actions import create_token
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.accounts.models import User
made = []
for number in range({count}):
    user = User.objects.create_user(f"user{{number}}@example.com")
    _, token = create_token(user=user, name="load", scopes=["chat", "read", "memory"])
    made.append([token, str(create_conversation(user=user, now=clock.now()).pk)])
print(json.dumps(made))
"""


@dataclass
class ModelProcess:
    """`tests.servers.openai_server` as a process."""

    process: subprocess.Popen[str]
    url: str

    def script(self, **behaviour: Any) -> None:
        httpx2.post(f"{self.url}/_script", json=behaviour).raise_for_status()

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx2.get(f"{self.url}/_requests").json()["requests"]
        return found

    def forget_requests(self) -> None:
        httpx2.delete(f"{self.url}/_requests").raise_for_status()


@contextmanager
def model_server(*arguments: str) -> Iterator[ModelProcess]:
    command = [sys.executable, "-m", "tests.servers.openai_server", "--port", "0", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield ModelProcess(process, process.stdout.readline().split()[-1].removesuffix("/v1"))
    finally:
        process.kill()
        process.wait()


@contextmanager
def running_service(
    model_url: str, people: int = 0, **env: str
) -> Iterator[tuple[Service, list[tuple[str, str]]]]:
    """The embedded service on a fresh folder, and `(token, conversation_id)` of each of its people."""
    clean_environment()
    folder = Path(tempfile.mkdtemp(prefix="palimpsest-bench-"))
    environment = {
        "DATA_DIR": str(folder),
        "OPENAI_BASE_URL": f"{model_url}/v1",
        "OPENAI_API_KEY": "none",
        "LLM_MODEL": "test-model",
        "MESSAGES_PER_MINUTE": "100000",
        **env,
    }
    service = Service([], folder / "service.log", environment)
    try:
        check(run_manage(environment, "migrate", "--verbosity=0"))
        made = json.loads(
            check(run_manage(environment, "shell", "-v0", "-c", PREPARE.format(count=people))).splitlines()[
                -1
            ]
        )
        service.start()
        yield service, [(token, conversation) for token, conversation in made]
    except BaseException:
        print(service.output()[-5_000:], file=sys.stderr)
        raise
    finally:
        service.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def prepared_database(database: str, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Django in this process, on an empty database: `sqlite` or `postgres`."""
    clean_environment()
    os.environ.update(environment)
    postgres = Postgres().start() if database == "postgres" else None
    if postgres:
        os.environ["DATABASE_URL"] = postgres.new_database()
    folder = context_load.prepare()
    try:
        yield
    finally:
        from django.db import connections

        connections.close_all()
        if postgres:
            postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def check(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    taken: list[float] = []
    started = time.perf_counter()
    yield taken
    taken.append(time.perf_counter() - started)
