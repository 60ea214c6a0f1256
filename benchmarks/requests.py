"""The CPU cost of a small REST request to the embedded service, with kept and with new SQLite connections.

python -m benchmarks.requests [--requests 300] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.stage import cpu_seconds
from benchmarks.start import LOOK_EVERY_S, is_ready
from tests.environment import ROOT, clean_environment
from tests.servers.people import ALICE, make_people
from tests.servers.service import run_manage
from tests.servers.waiting import reserve_port

ADDRESSES = ("/healthz", "/api/v1/me", "/api/v1/models", "/api/v1/conversations")
SERVE = """
import runpy, sys
from chatapp.operations.database.sqlite3 import base
base.MOST_KEPT = {kept}
sys.argv = ["manage.py", "serve", "--port", "{port}"]
runpy.run_path("manage.py", run_name="__main__")
"""


class Embedded:
    """A service on a data folder that keeps up to `kept` connections."""

    def __init__(self, folder: Path, kept: int, token: str) -> None:
        port = reserve_port()
        command = [sys.executable, "-c", SERVE.format(kept=kept, port=port)]
        env = {**os.environ, "DATA_DIR": str(folder)}
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers)
        while not is_ready(port):
            if self.process.poll() is not None:
                raise SystemExit("The service ended at its start.")
            time.sleep(LOOK_EVERY_S)

    def cpu_ms(self, address: str, count: int) -> float:
        """Return the service's mean CPU milliseconds per request."""
        before = cpu_seconds(self.process.pid)
        for _ in range(count):
            self.client.get(address).raise_for_status()
        return (cpu_seconds(self.process.pid) - before) * 1_000 / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    clean_environment()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        anew, kept = Path(folder, "anew"), Path(folder, "kept")
        anew.mkdir()
        run_manage({"DATA_DIR": str(anew)}, "migrate", "--verbosity=0")
        token = make_people({"DATA_DIR": str(anew)}, (ALICE,)).tokens[ALICE]
        shutil.copytree(anew, kept)
        services = [Embedded(anew, 0, token), Embedded(kept, 4, token)]
        try:
            for address in ADDRESSES:
                # In turn, so that other work on the machine slows down both.
                rounds = [
                    [each.cpu_ms(address, asked.requests) for each in services] for _ in range(asked.rounds)
                ]
                before, now = map(statistics.median, zip(*rounds, strict=True))
                print(f"{address:<24} anew {before:5.1f} ms  kept {now:5.1f} ms  ratio {now / before:4.2f}")
        finally:
            for each in services:
                each.process.terminate()
                each.process.wait()


if __name__ == "__main__":
    main()
