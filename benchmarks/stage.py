"""Processes and tools for measurements: the scripted model server, the service, CPU, memory and transactions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2

from benchmarks import context_load
from tests.environment import ROOT, clean_environment
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis
from tests.servers.service import OwnProcess, Service, run_manage

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
# Creates the users, tokens and conversations of a load with the service's own actions.
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


@dataclass
class Deployment:
    """The processes of a running service."""

    name: str
    webs: list[Service]
    worker: OwnProcess | None = None

    @property
    def processes(self) -> list[OwnProcess]:
        return [*self.webs, *([self.worker] if self.worker else [])]

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(each.process.pid) for each in self.processes if each.process)

    def peak_mb(self) -> float:
        """Return the peak memory of the largest process."""
        return max(peak_mb(each.process.pid) for each in self.processes if each.process)


@contextmanager
def running_service(
    model_url: str, people: int = 0, **env: str
) -> Iterator[tuple[Service, list[tuple[str, str]]]]:
    """Run the embedded service on a new folder. Yield it with the `(token, conversation_id)` of each user."""
    with deployment(model_url, people, **env) as (deployed, made):
        yield deployed.webs[0], made


@contextmanager
def deployment(
    model_url: str, people: int = 0, webs: int = 0, **env: str
) -> Iterator[tuple[Deployment, list[tuple[str, str]]]]:
    """Run the service on a new folder, embedded or as `webs` processes and a worker on PostgreSQL and Redis. Yield it
    with the `(token, conversation_id)` of each user."""
    clean_environment()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="palimpsest-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        environment = {
            "DATA_DIR": str(folder),
            "OPENAI_BASE_URL": f"{model_url}/v1",
            "OPENAI_API_KEY": "none",
            "LLM_MODEL": "test-model",
            "MESSAGES_PER_MINUTE": "100000",
            **env,
        }
        name = "embedded on SQLite"
        if webs:
            postgres, redis = Postgres(), Redis()
            environment["DATABASE_URL"] = postgres.start().new_database()
            stack.callback(postgres.stop)
            environment["REDIS_URL"] = redis.start().new_database()
            stack.callback(redis.stop)
            name = f"{webs} web processes and a worker on PostgreSQL and Redis"
        services = [Service([], folder / f"service-{n}.log", environment) for n in range(max(1, webs))]
        deployed = Deployment(name, services)
        for service in services:
            stack.callback(service.stop)
        try:
            check(run_manage(environment, "migrate", "--verbosity=0"))
            printed = check(run_manage(environment, "shell", "-v0", "-c", PREPARE.format(count=people)))
            if webs:
                worker = ("-m", "celery", "-A", "chatapp", "worker", "--loglevel=WARNING", "--concurrency=1")
                deployed.worker = services[0].companion("worker", *worker, "--pool=solo")
                deployed.worker.launch()
                stack.callback(deployed.worker.kill)
            for service in services:
                service.start()
            yield deployed, [tuple(pair) for pair in json.loads(printed.splitlines()[-1])]
        except BaseException:
            print("\n".join(service.output()[-5_000:] for service in services), file=sys.stderr)
            raise


@contextmanager
def prepared_database(database: str, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Set up Django in this process, on an empty database: `sqlite` or `postgres`."""
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
    """Return user and system time of a process with its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def peak_mb(pid: int) -> float:
    """Return the peak resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    taken: list[float] = []
    started = time.perf_counter()
    yield taken
    taken.append(time.perf_counter() - started)


# --- Transactions ----------------------------------------------------------------------------------------------


@dataclass
class Watched:
    """The number of statements in the block, and (wall-clock ms, CPU ms, caller) of each transaction in `held`. A write
    outside of a transaction counts as one."""

    statements: int = 0
    held: list[tuple[float, float, str]] = field(default_factory=list)
    began: tuple[float, float] = (0.0, 0.0)

    def execute(self, run: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        self.statements += 1
        from django.db import connection

        if connection.in_atomic_block or sql.startswith(("SELECT", "PRAGMA")):
            return run(sql, *arguments)
        began = moment()
        try:
            return run(sql, *arguments)
        finally:
            self.held.append((*since(began), caller()))


@contextmanager
def watch() -> Iterator[Watched]:
    from django.db import connection

    watched, change = Watched(), connection.set_autocommit

    def set_autocommit(autocommit: bool, *arguments: Any, **options: Any) -> None:
        if autocommit:  # The transaction is committed, and what follows a commit holds no lock.
            watched.held.append((*since(watched.began), caller()))
        change(autocommit, *arguments, **options)
        if not autocommit:
            watched.began = moment()

    setattr(connection, "set_autocommit", set_autocommit)  # noqa: B010
    try:
        with connection.execute_wrapper(watched.execute):
            yield watched
    finally:
        delattr(connection, "set_autocommit")


def caller() -> str:
    """Return our innermost function on the stack, and its caller."""
    frame, names = sys._getframe(1), list[str]()
    while frame.f_back is not None and len(names) < 2:
        frame = frame.f_back
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("chatapp."):
            names.append(f"{module.removeprefix('chatapp.')}.{frame.f_code.co_name}")
    return " < ".join(names)


def moment() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


def since(began: tuple[float, float]) -> tuple[float, float]:
    """Return (wall-clock milliseconds, CPU milliseconds)."""
    now = moment()
    return (now[0] - began[0]) * 1_000, (now[1] - began[1]) * 1_000
