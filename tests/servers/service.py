"""Our own processes, started as an operator starts them: `manage.py serve`, a Celery worker, beat."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from tests.environment import ROOT
from tests.servers.fork_server import Forked, can_be_forked, fork
from tests.servers.waiting import PATIENCE_S, reserve_port, wait_for

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)[/\s]")
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Avoids loading the machine's certificates for each client, which takes longer than most requests. No TLS is used."""
SETUP_LINK = re.compile(r"http://\S+/setup/\S+")


@dataclass
class OwnProcess:
    """One process with its environment. A file keeps its output across restarts."""

    arguments: list[str]
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | Forked | None = None
    is_forked: bool = False
    """Whether it starts as a fork with the libraries imported, rather than from scratch like an operator's process."""

    def launch(self) -> None:
        if self.is_forked and can_be_forked(self.env):
            env = {**os.environ, **self.env}
            self.process = fork(self.arguments, env, said=self.log, errors=self.log)
            return
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.arguments],
                cwd=ROOT,
                env={**os.environ, **self.env, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill the process with SIGKILL: no handler runs."""
        self._end(signal.SIGKILL)

    def stop(self, timeout_s: float = PATIENCE_S) -> int:
        """Stop the process with SIGTERM; return its exit code."""
        return self._end(signal.SIGTERM, timeout_s)

    def _end(self, number: int, timeout_s: float = PATIENCE_S) -> int:
        if self.process is None:
            return 0
        if self.is_running:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for_output(
        self, pattern: str | re.Pattern[str], *, since: int = 0, timeout_s: float = PATIENCE_S
    ) -> re.Match[str]:
        """Wait for the first match in the output after character `since`, and return it."""

        def look() -> re.Match[str] | None:
            match = re.compile(pattern).search(self.output(), since)
            if not match and not self.is_running:
                raise AssertionError(
                    f"{self.arguments} ended before it printed {pattern!r}:\n{self.output()}"
                )
            return match

        match = wait_for(
            look, timeout_s=timeout_s, what=f"{self.arguments} prints {pattern!r}", explain=self.output
        )
        assert match
        return match


@dataclass
class Service(OwnProcess):
    """A `manage.py serve` process. It keeps its port across restarts."""

    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    """API tokens of the users that were created before the start, by email address."""
    cookies: dict[str, dict[str, str]] = field(default_factory=dict)
    """Cookies of a signed-in browser of each of these users."""
    newcomers: Counter[str] = field(default_factory=Counter)
    """How many users of each group tests have taken."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/chat"

    @property
    def data_dir(self) -> Path:
        return Path(self.env["DATA_DIR"])

    def start(self) -> Service:
        printed = len(self.output())
        self.port = self.port or reserve_port()
        self.arguments = ["manage.py", "serve", "--port", str(self.port)]
        self.launch()
        self.port = int(self.wait_for_output(ADDRESS, since=printed).group(1))
        wait_for(self.is_ready, what="/readyz", explain=self.output)
        return self

    def restart(self) -> Service:
        """Stop the service with SIGTERM, if it still runs, and start it on the same data and port."""
        self.stop()
        return self.start()

    def is_ready(self) -> bool:
        if not self.is_running:
            raise AssertionError(f"The service ended at its start:\n{self.output()}")
        try:
            with self.client(timeout_s=30) as client:
                return client.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def manage(self, *arguments: str, stdin: str = "") -> str:
        """Run a management command beside the service, on the same data; return what it prints."""
        done = run_manage(self.env, *arguments, stdin=stdin, is_forked=self.is_forked)
        if done.returncode:
            raise AssertionError(f"manage.py {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def create_user(
        self, email: str, password: str = "correct horse battery", *, admin: bool = False
    ) -> None:
        self.manage("create_user", email, "--password-stdin", *(["--admin"] if admin else []), stdin=password)

    def client(self, token: str = "", timeout_s: float = PATIENCE_S) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=timeout_s, verify=NO_CERTIFICATES)

    def client_of(self, email: str) -> httpx2.Client:
        return self.client(self.tokens[email])

    def token_of(self, email: str, *scopes: str) -> str:
        """Return a new API token with these scopes."""
        return self.manage("create_token", email, "--scopes", ",".join(scopes)).split()[-1]

    def newcomer(self, group: Sequence[str]) -> str:
        """Return the email address of the next user of `group` that no test has taken."""
        name = group[0]
        self.newcomers[name] += 1
        assert self.newcomers[name] <= len(group), (
            f"more tests share this service than {name}'s group has people"
        )
        return group[self.newcomers[name] - 1]

    def companion(self, name: str, *arguments: str) -> OwnProcess:
        """Return a process with the same environment, such as a Celery worker, not started yet."""
        log = self.log.with_name(f"{name}.log")
        return OwnProcess(list(arguments), log, self.env, is_forked=self.is_forked)


def run_manage(
    env: dict[str, str], *arguments: str, stdin: str = "", is_forked: bool = True
) -> subprocess.CompletedProcess[str]:
    if is_forked and can_be_forked(env):
        return fork_manage(env, *arguments, stdin=stdin)
    command = [sys.executable, "manage.py", *arguments]
    environment = {**os.environ, **env}
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def fork_manage(env: dict[str, str], *arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    with TemporaryDirectory() as name:
        given, said, errors = (Path(name) / part for part in ("stdin", "stdout", "stderr"))
        given.write_text(stdin)
        command = ["manage.py", *arguments]
        process = fork(command, {**os.environ, **env}, said=said, errors=errors, stdin=given)
        code = process.wait(600)
        return subprocess.CompletedProcess(command, code, said.read_text(), errors.read_text())
