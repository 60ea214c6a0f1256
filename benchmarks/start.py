"""How long the embedded service takes to start on existing data, and how much memory it uses at rest.

python -m benchmarks.start [--python PYTHON] [--starts 3]

`--python`: the Python of an environment with only the packages of requirements.lock, like an operator's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.stage import cpu_seconds
from tests.environment import ROOT, clean_environment
from tests.servers.waiting import reserve_port

AT_REST_S = 10.0
LOOK_EVERY_S = 0.02


def start(python: str, folder: Path) -> tuple[float, float, float]:
    """Return (seconds until /readyz answers 200, CPU seconds until then, MB resident AT_REST_S later)."""
    port = reserve_port()
    env = {**os.environ, "DATA_DIR": str(folder)}
    command = [python, "manage.py", "serve", "--migrate", "--port", str(port)]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    try:
        while not is_ready(port):
            if process.poll() is not None:
                raise SystemExit("The service ended at its start.")
            time.sleep(LOOK_EVERY_S)
        ready_s, cpu_s = time.monotonic() - began, cpu_seconds(process.pid)
        time.sleep(AT_REST_S)
        held = Path(f"/proc/{process.pid}/smaps_rollup").read_text().partition("Rss:")[2]
        return ready_s, cpu_s, int(held.split()[0]) / 1024
    finally:
        process.terminate()
        process.wait()


def is_ready(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--starts", type=int, default=3)
    asked = parser.parse_args()
    clean_environment()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        for number in range(asked.starts + 1):
            ready_s, cpu_s, held_mb = start(asked.python, Path(folder))
            kind = "first start, with all migrations" if number == 0 else "later start"
            print(f"{kind:<34} {ready_s:6.2f} s  CPU {cpu_s:5.2f} s  at rest {held_mb:4.0f} MB", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
