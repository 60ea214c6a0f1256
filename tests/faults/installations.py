"""The installations under test, each with a faulty model, for pytest and for the soak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.model_faults import SECRET, FaultyModel
from tests.faults.outages import Outages
from tests.reliability.installation import Installation, common_env
from tests.servers.made_once import MIGRATED, SQLITE_NAME, copy_migrated_sqlite
from tests.servers.openai_server import ModelServer
from tests.servers.people import make_people
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

MOVED_CLOCK = "tests.servers.moved_clock.moved_clock"


@dataclass
class Ground:
    """An installation, its possible outages and its users."""

    installation: Installation
    outages: Outages
    people: tuple[str, ...]


@contextmanager
def faulty_model() -> Iterator[ModelServer]:
    with ModelServer(window=0) as server:
        server.defaults["chat"] = FaultyModel().behave
        yield server


@contextmanager
def embedded(folder: Path, model: ModelServer, count: int) -> Iterator[Ground]:
    (folder / "data").mkdir(parents=True)
    copy_migrated_sqlite(folder / "data" / SQLITE_NAME)
    with _running(Installation("embedded", _env(folder, model), folder), None, count) as ground:
        yield ground


@contextmanager
def production(folder: Path, model: ModelServer, postgres: Postgres, count: int) -> Iterator[Ground]:
    (folder / "data").mkdir(parents=True)
    redis = Redis().start()
    env = {
        **_env(folder, model),
        "DATABASE_URL": postgres.new_database(MIGRATED),
        "REDIS_URL": redis.url(),
    }
    try:
        with _running(Installation("production", env, folder, redis=redis), postgres, count) as ground:
            yield ground
    finally:
        redis.stop()


@contextmanager
def _running(installation: Installation, postgres: Postgres | None, count: int) -> Iterator[Ground]:
    people = tuple(f"user-{number}@example.com" for number in range(count))
    installation.tokens = make_people(installation.env, people).tokens
    try:
        yield Ground(installation.start(), Outages(installation, postgres), people)
    finally:
        installation.stop()


def _env(folder: Path, model: ModelServer) -> dict[str, str]:
    clock = folder / "clock"
    clock.write_text("0")
    return {
        "DATA_DIR": str(folder / "data"),
        **common_env(model.base_url),
        "OPENAI_API_KEY": SECRET,
        "MAX_ANSWER_BYTES": "20000",
        # A busy machine delays an answer for seconds, and only the requested faults may occur.
        "MODEL_FIRST_TOKEN_TIMEOUT_S": "6",
        "MODEL_STALL_TIMEOUT_S": "6",
        "EXTRA_TOOLS": MOVED_CLOCK,
        "CLOCK_FILE": str(clock),
        "DEFAULT_TOOLS": "none",
    }
