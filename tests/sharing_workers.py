"""Which test files run in the same process with `--dist loadfile`: those that share what takes long to start."""

from __future__ import annotations

from pathlib import Path

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
