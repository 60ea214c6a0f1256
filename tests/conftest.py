"""Sets up the tests' own data folder and database: SQLite by default, PostgreSQL and Redis with `--database postgres`.

Coroutine tests run on `async_to_sync`, like Django's own, so that their database work stays in the test's thread.
"""

from __future__ import annotations

import gc
import inspect
import logging
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection

from tests.databases import has_nothing_to_run, is_on_both, touches_database
from tests.environment import ROOT, clean_environment
from tests.scheduling import Scheduling, in_order
from tests.servers.made_once import MIGRATED, copy_migrated_sqlite, start_migrated_postgres
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

pytest_plugins = ["tests.fixtures.processes", "tests.fixtures.browser", "tests.fixtures.files"]

# The time that an example takes depends on how busy the machine is and what is imported first.
UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
# Each commit gets the same examples, so that a run can be repeated. `--hypothesis-profile explore` tries new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, **UNTIMED)
hypothesis.settings.register_profile("explore", max_examples=2_000, **UNTIMED)
hypothesis.settings.load_profile("repeatable")

BROWSER_FIXTURES = {"chromium"}
PROCESS_FIXTURES = {"processes", "start_shared", "installation", "production", "embedded"}
STARTED = pytest.StashKey[list[Postgres | Redis]]()
DATA_FOLDER = pytest.StashKey[Path]()


class SteadyLoggers(dict[str, Any]):
    """The loggers of `logging`. Pytest iterates over them before each test while a thread of the last test may add one,
    so `values` returns a copy, made in one step."""

    def values(self) -> Any:
        return list(super().values())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=["sqlite", "postgres"],
        default=os.environ.get("TEST_DATABASE", "sqlite"),
        help="postgres: tests that touch the database, on a real PostgreSQL and Redis; with `-m databases` only those of"
        " `tests/databases.py` (default: sqlite, all tests)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set up the environment before pytest-django reads the settings. With `-n`, each worker has its own data."""
    config.stash[STARTED] = []
    if not hasattr(config, "workerinput"):
        if not config.option.collectonly:
            make_what_pages_show()
        if config.getoption("numprocesses", None):
            return
    logging.Logger.manager.loggerDict = SteadyLoggers(logging.Logger.manager.loggerDict)
    if "chatapp.settings" in sys.modules:
        raise pytest.UsageError("Unset DJANGO_SETTINGS_MODULE: the tests bring their own environment.")
    config.stash[DATA_FOLDER] = Path(tempfile.mkdtemp(prefix="palimpsest-data-"))
    clean_environment()
    os.environ["DATA_DIR"] = str(config.stash[DATA_FOLDER])
    if config.getoption("database") == "postgres":
        start_servers(config)
    os.environ["DJANGO_SETTINGS_MODULE"] = "chatapp.settings"
    django.setup()
    make_hashing_cheap()
    for name in ("people", "emptying", "pace", "static_files"):  # they import models
        config.pluginmanager.import_plugin(f"tests.fixtures.{name}")


def make_what_pages_show() -> None:
    """Compile messages and collect static files before any test, as a process reads the list of hashed files once."""
    setup = runpy.run_path(str(ROOT / ".ci" / "setup.py"))
    with setup["alone"]():
        setup["compile_messages"]()
        setup["collect_static"]()


def make_hashing_cheap() -> None:
    """Hash passwords with the least work that Argon2 can do. Its default takes 100 MB and a fifth of a second to slow
    down guessing. Services that tests start as processes keep the default."""
    # Imported here because it imports models.
    from django.contrib.auth.hashers import Argon2PasswordHasher

    Argon2PasswordHasher.time_cost, Argon2PasswordHasher.parallelism = 1, 1
    Argon2PasswordHasher.memory_cost = 8


def start_servers(config: pytest.Config) -> None:
    postgres, redis = start_migrated_postgres(), Redis()
    config.stash[STARTED] += [postgres, redis]
    os.environ["DATABASE_URL"] = postgres.new_database()
    os.environ["REDIS_URL"] = redis.start().new_database()


def pytest_unconfigure(config: pytest.Config) -> None:
    for server in config.stash.get(STARTED, []):
        server.stop()
    shutil.rmtree(config.stash.get(DATA_FOLDER, Path("/nonexistent")), ignore_errors=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_left_out = collection_path.name.startswith("test_") and has_nothing_to_run(collection_path, config)
    return is_left_out or None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if used & BROWSER_FIXTURES:
            item.add_marker("browser")
        if used & PROCESS_FIXTURES:
            item.add_marker("processes")
        if item.get_closest_marker("postgres") or is_on_both(item.path):
            item.add_marker("databases")
    is_postgres = config.getoption("database") == "postgres"
    runs_here = runs_on_postgres if is_postgres else needs_no_postgres
    chosen = [item for item in items if runs_here(item)]
    config.hook.pytest_deselected(items=[item for item in items if not runs_here(item)])
    items[:] = chosen
    yield  # Other plugins deselect by these marks and put database tests first.
    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Collect garbage like the services: less often, and without imported objects, which never become garbage."""
    # Imported here because its imports set DJANGO_SETTINGS_MODULE, which the workers would inherit.
    from chatapp.operations.workers.collector import ALLOCATIONS

    gc.freeze()
    gc.set_threshold(ALLOCATIONS, 10, 10)


def needs_no_postgres(item: pytest.Item) -> bool:
    return item.get_closest_marker("postgres") is None


def runs_on_postgres(item: pytest.Item) -> bool:
    return touches_database(item) and not (
        item.get_closest_marker("processes") or item.get_closest_marker("sqlite")
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    async_to_sync(pyfuncitem.obj)(**arguments)
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Create the test database as a copy of a migrated one, so that pytest-django finds nothing to migrate."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        copy_migrated_sqlite(Path(database["TEST"]["NAME"]))
        # Like `fsync=off` for PostgreSQL: tests need no durability, and each commit would wait for the disk.
        connection.settings_dict["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
    else:
        connection.settings_dict["TEST"]["TEMPLATE"] = MIGRATED


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Keep the test database: its whole server or folder is deleted, without waiting for open connections."""
    return True


@pytest.fixture(autouse=True)
def settings_as_before() -> Iterator[None]:
    """Fail a test that leaves changed settings to later tests. The fixture `settings` is undone after the test's own
    overrides. If it was changed inside of an override, undoing it restores that override."""
    before = settings._wrapped
    yield
    after, settings._wrapped = settings._wrapped, before
    assert after is before, "changed settings are left: inside of override_settings use it for these, too"
