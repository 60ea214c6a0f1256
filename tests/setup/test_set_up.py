"""`.ci/setup.py`, which `make` and each run of pytest begin with."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import ROOT

HOLD = """
import runpy, sys
with runpy.run_path(sys.argv[1])["alone"]():
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_two_at_once_in_one_checkout_come_one_after_the_other(tmp_path: Path) -> None:
    setup = shutil.copy(ROOT / ".ci" / "setup.py", tmp_path)
    command = [sys.executable, "-c", HOLD, str(setup)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "begun\n"
        with open(setup) as second, pytest.raises(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        first.communicate()
    with open(setup) as second:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
