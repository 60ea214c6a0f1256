"""Starts our programs from a process that has imported their libraries: a start costs a third.

The libraries are the same for every process that a test starts, and to import them is most of its start. What reads
settings or the environment as it is imported, which is all of `chatapp`, is not among them: each process imports that
itself, after the fork, in an environment of its own.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.environment import ROOT

WHOLE = ("agents", "memory")
IMPORTED = (
    "autobahn.twisted.websocket",
    "babel.messages.pofile",
    "celery.beat",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.worker",
    "channels_redis.core",
    "cryptography.hazmat.primitives.ciphers.aead",
    "daphne.ws_protocol",
    "django.core.handlers.asgi",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.views.generic",
    "fido2.server",
    "genai_prices",
    "httpx2",
    "ijson",
    "jinja2",
    "kombu.transport.filesystem",
    "kombu.transport.memory",
    "kombu.transport.redis",
    "limits",
    "numpy",
    "openai",
    "prometheus_client",
    "psycopg_pool",
    "pydantic.networks",
    "redis.asyncio",
    "requests",
    "structlog.dev",
    "twisted.web.http",
)
"""Each can be imported without settings, starts no thread and opens nothing; so can every module of our packages WHOLE."""
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_", "OTEL_", "TZ")
"""How the names begin that an interpreter or a library reads as it starts: with these a process begins from nothing."""
LOOK_EVERY_S = 0.01


class Forked:
    """What of `subprocess.Popen` the tests use."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.server.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        began = time.monotonic()
        while self.poll() is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(LOOK_EVERY_S)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """The process that has imported the libraries; it ends when its socket is closed."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.socket, self.answers = ours, ours.makefile("r")
        self.lock = threading.Lock()

    def ask(self, request: Mapping[str, Any]) -> Any:
        with self.lock:
            self.socket.sendall(json.dumps(request).encode() + b"\n")
            answer = self.answers.readline()
        if not answer:
            raise AssertionError("The process that starts the others has ended.")
        return json.loads(answer)


LOCK = threading.Lock()
"""Tests start processes in several threads, which share one server."""


@cache
def fork_server() -> ForkServer:
    return ForkServer()


def fork(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    said: Path,
    errors: Path,
    stdin: Path = Path(os.devnull),
) -> Forked:
    """Begin `python ARGUMENTS` (a file, or `-m` and a module) in the root of the checkout; its output goes to files."""
    with LOCK:
        server = fork_server()
    files = [str(path.absolute()) for path in (stdin, said, errors)]
    return Forked(server, server.ask({"arguments": list(arguments), "env": dict(env), "files": files}))


def can_be_forked(env: Mapping[str, str]) -> bool:
    """Return whether `env`, which a process has besides our environment, is read only after the start."""
    return not any(name.startswith(READ_AT_THE_START) for name in env)


def serve(ours: socket.socket) -> dict[str, Any] | None:
    """Answer until the socket is closed. Return None then, and in each new process what it shall be."""
    with ours.makefile("r") as requests:
        for line in requests:
            request: dict[str, Any] = json.loads(line)
            if "poll" in request:
                answer = poll(request["poll"])
            elif not (answer := fork_leader()):
                return request
            ours.sendall(json.dumps(answer).encode() + b"\n")
    return None


def poll(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def fork_leader() -> int:
    """Fork a process that leads a group of its own by the time this returns."""
    led, leads = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
    os.close(leads)
    if pid:
        os.read(led, 1)  # ends when the other side is closed there, too
    os.close(led)
    return pid


def become(request: Mapping[str, Any]) -> None:
    """Turn this process into the one that was asked for."""
    for number, path in enumerate(request["files"]):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o666)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program, *arguments = request["arguments"]
    sys.path[0] = str(ROOT)
    if program == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")


def our_modules() -> Iterator[str]:
    for package in WHOLE:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def main() -> None:
    gc.disable()
    for name in (*IMPORTED, *our_modules()):
        importlib.import_module(name)
    # A reactor's or a thread's state cannot be shared by two processes.
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1
    gc.freeze()
    gc.enable()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        request = serve(ours)
    if request:
        become(request)


if __name__ == "__main__":
    main()
