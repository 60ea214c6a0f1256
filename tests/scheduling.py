"""In which order `--dist loadfile` takes the test files, and which of them run in the same process: those that share what
takes long to start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling

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
    """Return the items with files that wait for processes spread evenly among those that compute, the slowest first, or
    one worker has them left when the others are done. Files with a browser come last: see the fixture `browser`."""
    marks: dict[Path, set[str]] = defaultdict(set)
    for item in items:
        marks[item.path] |= {mark.name for mark in item.iter_markers()}
    places: dict[Path, tuple[bool, float]] = {}
    for kind in ("browser", "processes", ""):
        files = [path for path in marks if path not in places and (kind in marks[path] or not kind)]
        files.sort(
            key=lambda path: (not shares_worker(path), "slow" not in marks[path], -path.stat().st_size)
        )
        places |= {path: (kind == "browser", number / len(files)) for number, path in enumerate(files)}
    return sorted(items, key=lambda item: places[item.path])
