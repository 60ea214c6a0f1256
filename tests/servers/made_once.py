"""Makes files once that take seconds to make and are the same for every test. The tests copy them.

Migrated databases stay below `.pytest_cache` until the migrations, models or libraries change. Each run, phase and
worker copies them. Files that depend on more of the code are made once per pytest run.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.environment import ROOT
from tests.servers.postgres import Postgres
from tests.servers.service import run_manage

KEPT = ROOT / ".pytest_cache" / "databases"
DECIDING = ("chatapp/migrations/*.py", "chatapp/**/models.py", "chatapp/**/models/*.py", "*.lock")
SQLITE_NAME = "palimpsest.sqlite3"
MIGRATED = "migrated"
"""The template database in the PostgreSQL cluster."""


def copy_migrated_sqlite(target: Path) -> None:
    with made_once(KEPT, f"sqlite-{state_of_schema()}", _migrate_sqlite) as folder:
        shutil.copy(folder / SQLITE_NAME, target)


def start_migrated_postgres() -> Postgres:
    """Start a server for this caller only, with the database MIGRATED."""
    with made_once(KEPT, f"postgres-{state_of_schema()}", _migrate_postgres) as folder:
        server = Postgres(cluster=folder / "data")
        return server.start()


@contextmanager
def made_once(kept: Path, name: str, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the folder that `make` fills. The first caller makes it while others wait, and deletes older ones."""
    kind = name.partition("-")[0]
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = kept / name
        if not folder.exists():
            for former in kept.glob(f"{kind}-*"):
                shutil.rmtree(former)
            draft = kept / f"{kind}-draft"
            shutil.rmtree(draft, ignore_errors=True)  # An interrupted run leaves its draft behind.
            draft.mkdir()
            make(draft)
            draft.rename(folder)
        yield folder


def state_of_schema() -> str:
    digest = hashlib.sha256()
    for pattern in DECIDING:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _migrate_sqlite(folder: Path) -> None:
    _migrate({"DATA_DIR": str(folder)})


def _migrate_postgres(folder: Path) -> None:
    server = Postgres().start()
    try:
        server.create_database(MIGRATED)
        _migrate(
            {
                "DATA_DIR": str(folder),
                "DATABASE_URL": server.url(MIGRATED),
                "REDIS_URL": "redis://127.0.0.1:9/0",
            }
        )
        server.interrupt()
        subprocess.run(["cp", "-a", server.data, folder / "data"], check=True)
    finally:
        server.stop()


def _migrate(env: dict[str, str]) -> None:
    done = run_manage(env, "migrate", "--verbosity=0")
    assert done.returncode == 0, done.stdout + done.stderr
