"""Two installations for the whole folder. A test may kill any process: all run again before the next test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.installation import PEOPLE, Installation, common_env
from tests.reliability.people import Person
from tests.reliability.scripting import Script, scripted_model
from tests.servers.made_once import MIGRATED
from tests.servers.people import Credentials, make_people
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis


@pytest.fixture(scope="session")
def script() -> Iterator[Script]:
    with scripted_model() as script:
        yield script


@pytest.fixture(scope="package")
def embedded_installation(
    script: Script,
    peopled_data: tuple[Path, Credentials],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("embedded")
    data, people = peopled_data
    shutil.copytree(data, folder / "data")
    env = {"DATA_DIR": str(folder / "data"), **common_env(script.server.base_url)}
    installation = Installation("embedded", env, folder)
    installation.tokens = dict(people.tokens)
    yield installation
    installation.stop()


@pytest.fixture(scope="package")
def own_redis() -> Iterator[Redis]:
    """Yield a Redis server for this folder only, because its tests empty and stop it."""
    server = Redis()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="package")
def production_installation(
    script: Script,
    postgres: Postgres,
    own_redis: Redis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("production")
    (folder / "data").mkdir()
    env = {
        "DATA_DIR": str(folder / "data"),
        "DATABASE_URL": postgres.new_database(MIGRATED),
        "REDIS_URL": own_redis.url(),
        **common_env(script.server.base_url),
    }
    installation = Installation("production", env, folder, redis=own_redis)
    installation.tokens = make_people(env, PEOPLE).tokens
    yield installation
    installation.stop()


@pytest.fixture(params=["embedded", "production"])
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """Yield each installation in turn, with all its processes running."""
    yield from running(request, request.getfixturevalue(f"{request.param}_installation"))


@pytest.fixture
def production(
    request: pytest.FixtureRequest, production_installation: Installation
) -> Iterator[Installation]:
    yield from running(request, production_installation)


@pytest.fixture
def embedded(request: pytest.FixtureRequest, embedded_installation: Installation) -> Iterator[Installation]:
    yield from running(request, embedded_installation)


def running(request: pytest.FixtureRequest, installation: Installation) -> Iterator[Installation]:
    request.applymarker("processes")
    yield installation.start()
    request.node.add_report_section("call", "processes", installation.output())


@pytest.fixture
def alice(request: pytest.FixtureRequest) -> Person:
    """Return alice as a client of the first web process."""
    return Person(running_installation(request).client())


@pytest.fixture
def alice_elsewhere(request: pytest.FixtureRequest) -> Person:
    """Return alice as a client of the second web process, or of the only one."""
    installation = running_installation(request)
    return Person(installation.client(installation.second))


def running_installation(request: pytest.FixtureRequest) -> Installation:
    name = next(name for name in ("installation", "production", "embedded") if name in request.fixturenames)
    found: Installation = request.getfixturevalue(name)
    return found
