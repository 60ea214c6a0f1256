"""The order of test files for `--dist loadfile`, and which of them share a worker because of slow fixtures."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling

from tests.databases import touches_database
from tests.environment import ROOT

INSTALLATIONS = ROOT / "tests" / "reliability"
"""Its files share two whole installations, which every worker that runs any of them starts for itself."""
PROCESSES_FOR_THEM = 2


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return name_share(ROOT / file) if shares_worker(ROOT / file) else file


def shares_worker(path: Path) -> bool:
    return path.parent == INSTALLATIONS


def name_share(path: Path) -> str:
    files = sorted(INSTALLATIONS.glob("test_*.py"))
    return f"{INSTALLATIONS.name} {files.index(path) % PROCESSES_FOR_THEM}"


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items file by file. Files that compute come first, beside those of `INSTALLATIONS`, which mostly wait.
    Then come files with a browser, which a worker cannot close early (see the fixture `browser`), with others that wait
    for processes spread evenly among them. The slowest of each kind come first, or one worker would finish late."""
    tests: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.path].append(item)
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path, some in tests.items():
        kinds[_kind_of(some)].append(path)
    places: dict[Path, float] = {}
    for kind, files in kinds.items():
        files.sort(key=lambda path: (not _any_has("slow", tests[path]), -path.stat().st_size))
        first = 0 if kind == "computes" else 1
        places |= {path: first + number / len(files) for number, path in enumerate(files)}
    return sorted(items, key=lambda item: (not shares_worker(item.path), places[item.path]))


def _kind_of(items: Sequence[pytest.Item]) -> str:
    if _any_has("browser", items):
        return "shows"
    return "waits" if all(map(_runs_beside_a_browser, items)) else "computes"


def _runs_beside_a_browser(item: pytest.Item) -> bool:
    """Return whether the test only waits for processes. A browser's event loop rules out coroutines and the ORM."""
    is_coroutine = inspect.iscoroutinefunction(getattr(item, "function", None))
    return bool(item.get_closest_marker("processes")) and not is_coroutine and not touches_database(item)


def _any_has(mark: str, items: Sequence[pytest.Item]) -> bool:
    return any(item.get_closest_marker(mark) for item in items)
