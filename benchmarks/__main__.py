"""Runs all measurements one after another, each in its own process: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIRST = ("context", "compaction_turn", "streaming")
APART = frozenset(
    {
        "__init__",
        "__main__",
        "stage",
        "context_load",
        "load_client",
        "many_rows",
        "recall_baselines",
        "recall_data",
        "recall_letters",
        "recall_gate",
        "recall_speed",
    }
)


def main() -> int:
    others = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - APART - set(FIRST))
    failed = []
    for name in (*FIRST, *others):
        print(f"\n== python -m benchmarks.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nNot measured: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    raise SystemExit(main())
