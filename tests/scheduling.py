"""In which order `--dist loadfile` takes the test files, and which of them run in the same process: those that share what
takes long to start."""

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
"""Its files share two whole installations, which each process that has some of them starts for itself."""
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
    """Return the items by files: first those that compute, beside those of `INSTALLATIONS`, which mostly wait; then those
    with a browser, which a process cannot leave (see the fixture `browser`), and spread evenly among them others that
    wait for processes. Of each kind the slowest come first, or one worker has them left when the others are done."""
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
    """Whether it only waits for processes: with the event loop of a browser, coroutines and the ORM are refused."""
    is_coroutine = inspect.iscoroutinefunction(getattr(item, "function", None))
    return bool(item.get_closest_marker("processes")) and not is_coroutine and not touches_database(item)


def _any_has(mark: str, items: Sequence[pytest.Item]) -> bool:
    return any(item.get_closest_marker(mark) for item in items)
