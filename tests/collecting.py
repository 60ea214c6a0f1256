"""Which test files a phase of `make test` need not import: to import them all takes longer than many tests.

The first phase collects every file and keeps, for as long as no file of the tests changes, which of them have tests of
processes or a browser, and which have others. The later phases leave out the rest. Without that record, or with other
marks, everything is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.databases import is_on_both
from tests.environment import ROOT

KEPT = ROOT / ".pytest_cache" / "collected"
WAITING = "processes or browser"
OTHERS = "not processes and not browser"


def has_nothing_to_run(path: Path, config: pytest.Config) -> bool:
    """Whether `-m` would leave out every test of the file."""
    marks = config.getoption("markexpr")
    if config.getoption("database") == "postgres":
        return marks == "databases" and not is_on_both(path) and "mark.postgres" not in path.read_text()
    kinds = read_record().get(str(path.relative_to(ROOT)))
    return kinds is not None and marks in (WAITING, OTHERS) and marks not in kinds


@cache
def read_record() -> dict[str, list[str]]:
    """Return which of the two marks each file has tests for."""
    record = _record()
    kinds: dict[str, list[str]] = json.loads(record.read_text()) if record.exists() else {}
    return kinds


def keep_record(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Keep what `items` are, if they are all there is."""
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not is_whole or config.getoption("database") == "postgres" or read_record():
        return
    kinds = defaultdict(set)
    for item in items:
        waits = item.get_closest_marker("processes") or item.get_closest_marker("browser")
        kinds[str(item.path.relative_to(ROOT))].add(WAITING if waits else OTHERS)
    KEPT.mkdir(parents=True, exist_ok=True)
    for former in KEPT.glob("*.json"):
        former.unlink(missing_ok=True)
    draft = KEPT / f"draft-{os.getpid()}"
    draft.write_text(json.dumps({file: sorted(found) for file, found in sorted(kinds.items())}))
    draft.rename(_record())


@cache
def _record() -> Path:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return KEPT / f"{digest.hexdigest()[:16]}.json"
