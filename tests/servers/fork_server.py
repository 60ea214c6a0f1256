"""Starts our programs as forks of a process that has already imported them, in a tenth of the time.

One process imports the libraries. A template, forked from it, imports the service. Programs are forks of the template
and read all settings again. A program whose environment changes a setting that was read during the import gets its own
template. All pytest workers of a run share these processes, which listen on sockets in one folder.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NoReturn, TextIO
from uuid import uuid4

from tests.environment import ROOT
from tests.servers import imported_service

WHOLE = ("agents", "memory")
IMPORTED = (
    "autobahn.twisted.websocket",
    "babel.messages.pofile",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.beat",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.events.receiver",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.worker",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.loops",
    "celery.worker.pidbox",
    "channels_redis.core",
    "cryptography.hazmat.primitives.ciphers.aead",
    "daphne.http_protocol",
    "daphne.ws_protocol",
    "dbm.dumb",
    "django.core.handlers.asgi",
    "django.core.management",
    "django.core.management.commands.migrate",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.views.generic",
    "fido2.server",
    "genai_prices",
    "genai_prices.data",
    "genai_prices.data_units",
    "httpx2",
    "ijson",
    "jinja2",
    "kombu.asynchronous.semaphore",
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
    "twisted.internet.posixbase",
    "twisted.internet.udp",
    "twisted.internet.unix",
    "twisted.web.http",
)
"""Importing these needs no settings, starts no thread and opens no file. The same is true of all modules in WHOLE."""
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_", "OTEL_", "TZ")
"""Prefixes of variables that an interpreter or a library reads at its start. A process that sets one is not forked."""
FREE = {"DATA_DIR", "DATABASE_URL", "LLM_MODEL", "OPENAI_BASE_URL", "REDIS_URL"}
"""Variables that differ most often. Environments that differ in nothing else share a template without another check.
No module reads these during the import, which each start verifies."""
KINDS = ("DATABASE_URL", "REDIS_URL")
"""Whether these are set decides which libraries a service uses."""
MOST_TEMPLATES = 6
LOOK_EVERY_S = 0.01
ALONE_S = 5.0
"""How long a process that others are forked from waits for another worker after the last one has disconnected."""
REFUSED = 3
"""The exit code of a template if the settings reject its environment."""
DIFFERS = 4
"""The exit code of a fork whose environment changes a setting that its template read during the import."""


class Forked:
    """A forked process, with the part of `subprocess.Popen` that the tests use."""

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
    """A connection to a process that others are forked from."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.answers = connection, connection.makefile("r")
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
def sockets() -> Path:
    """Return the folder of this pytest run's sockets. Only its own account can read it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid4().hex
    folder = Path(tempfile.gettempdir()) / f"palimpsest-forks-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def alone() -> Iterator[None]:
    """Keep the other workers of this run from looking for a process or starting one."""
    folder = os.open(sockets(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def connect(path: Path) -> ForkServer | None:
    """Connect to the process that listens on this socket. Return None if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return ForkServer(connection)


def listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)  # A killed process leaves its socket behind.
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(path))
    door.listen()
    return door


@cache
def library_server() -> ForkServer:
    """Return the process that has imported the libraries."""
    path = sockets() / "libraries"
    with alone():
        return connect(path) or start_libraries(path)


def start_libraries(path: Path) -> ForkServer:
    with listen(path) as door:
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(door.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[door.fileno()],
            start_new_session=True,
        )
        server = connect(path)
    assert server
    return server


TEMPLATES: dict[Path, ForkServer] = {}
"""The templates that this worker has used, by socket, oldest first."""
FOUND: dict[frozenset[tuple[str, str]], ForkServer] = {}
"""The process to fork programs from, by the part of their environment that matters."""


def server_for(env: Mapping[str, str]) -> ForkServer:
    kinds = "".join("1" if env.get(name) else "0" for name in KINDS)
    decisive = {
        name: value for name, value in env.items() if name not in FREE and not name.startswith("PYTEST_")
    }
    key = frozenset({**decisive, "kinds": kinds}.items())
    if key not in FOUND:
        libraries = library_server()
        with alone():
            FOUND[key] = find_template(kinds, env) or add_template(kinds, env) or libraries
    return FOUND[key]


def find_template(kinds: str, env: Mapping[str, str]) -> ForkServer | None:
    for path in sorted(sockets().glob(f"{kinds}-*")):
        template = TEMPLATES.get(path) or connect(path)
        if template and Forked(template, template.ask({"fits": dict(env)})).wait() == 0:
            keep_template(path, template)
            return template
    return None


def add_template(kinds: str, env: Mapping[str, str]) -> ForkServer | None:
    """Start another template. Return None if the settings reject the environment."""
    path = next(path for n in count() if not (path := sockets() / f"{kinds}-{n}").exists())
    template = start_template(path, env)
    if template is not None:
        keep_template(path, template)
    return template


def keep_template(path: Path, template: ForkServer) -> None:
    TEMPLATES[path] = template
    if len(TEMPLATES) > MOST_TEMPLATES:
        oldest = TEMPLATES.pop(next(iter(TEMPLATES)))
        for key in [key for key, server in FOUND.items() if server is oldest]:
            del FOUND[key]


def start_template(path: Path, env: Mapping[str, str]) -> ForkServer | None:
    asked = {"env": dict(env), "socket": str(path)}
    template = Forked(library_server(), library_server().ask(asked))
    while template.poll() is None:
        if server := connect(path):
            return server
        time.sleep(LOOK_EVERY_S)
    assert template.returncode == REFUSED, "The service cannot be imported; stderr says why."
    return None


def fork(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    said: Path,
    errors: Path,
    stdin: Path = Path(os.devnull),
) -> Forked:
    """Start `python ARGUMENTS` (a file, or `-m` and a module) in the root of the checkout, with its output in files."""
    with LOCK:
        server = server_for(env)
    files = [str(path.absolute()) for path in (stdin, said, errors)]
    return Forked(server, server.ask({"arguments": list(arguments), "env": dict(env), "files": files}))


def can_be_forked(env: Mapping[str, str]) -> bool:
    """Return whether no variable of `env`, which a process gets besides our environment, is read at its start."""
    return not any(name.startswith(READ_AT_THE_START) for name in env)


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Answer requests until no worker has been connected for ALONE_S, then return None. In each new process, return the
    request that it was forked for."""
    asking: dict[socket.socket, TextIO] = {}
    with door:
        while ready := select.select([door, *asking], [], [], None if asking else ALONE_S)[0]:
            for one in ready:
                if one is door:
                    new, _ = door.accept()
                    asking[new] = new.makefile("r")
                elif line := read_request(asking[one]):
                    if request := answer(one, json.loads(line)):
                        for each in asking.items():
                            close(*each)
                        return request
                else:
                    close(one, asking.pop(one))
        leave(Path(door.getsockname()))
    return None


def answer(connection: socket.socket, request: dict[str, Any]) -> dict[str, Any] | None:
    """Send an exit code, or the id of a new process. In that process, return the request that it was forked for."""
    if "poll" in request:
        number = poll(request["poll"])
    elif not (number := fork_leader()):
        return request
    with suppress(OSError):  # If the worker was killed, the next read closes its connection.
        connection.sendall(json.dumps(number).encode() + b"\n")
    return None


def leave(path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):  # The folder may contain other sockets.
        path.parent.rmdir()


def read_request(requests: TextIO) -> str:
    """Return one line, or "" if the worker has disconnected."""
    try:
        return requests.readline()
    except ConnectionResetError:
        return ""


def close(connection: socket.socket, requests: TextIO) -> None:
    requests.close()
    connection.close()


def poll(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def fork_leader() -> int:
    """Fork a process. When this returns, the process leads its own process group."""
    led, leads = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
    os.close(leads)
    if pid:
        os.read(led, 1)  # Returns when the child has closed its end, too.
    os.close(led)
    return pid


def become(request: Mapping[str, Any]) -> None:
    """Turn this process into the requested program."""
    for number, path in enumerate(request["files"]):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o666)
        os.dup2(file, number)
        os.close(file)
    enter(request["env"])
    if imported_service.is_here():
        differ = imported_service.read_settings_anew()
        assert not differ, f"Modules read {differ} as they are imported: FREE is wrong."
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program, *arguments = request["arguments"]
    sys.path[0] = str(ROOT)
    if program == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")


def enter(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)


def become_template(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Import the service, then answer requests like `serve`."""
    enter(request["env"])
    gc.disable()
    try:
        imported_service.import_it()
    except SystemExit:
        os._exit(REFUSED)
    keep_as_it_is()
    asked = serve(listen(Path(request["socket"])))
    if asked and "fits" in asked:
        end_as_fitting(asked["fits"])
    return asked


def end_as_fitting(env: Mapping[str, str]) -> NoReturn:
    """Exit with 0 if this process could become a program with this environment."""
    enter(env)
    try:
        os._exit(DIFFERS if imported_service.read_settings_anew() else 0)
    except SystemExit:
        os._exit(REFUSED)


def keep_as_it_is() -> None:
    # Two processes cannot share the state of a reactor or a thread.
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1
    gc.freeze()
    gc.enable()


def our_modules() -> Iterator[str]:
    for package in WHOLE:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def main() -> None:
    gc.disable()
    for name in (*IMPORTED, *our_modules()):
        importlib.import_module(name)
    keep_as_it_is()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request and "socket" in request:
        request = become_template(request)
    if request:
        become(request)


if __name__ == "__main__":
    main()
