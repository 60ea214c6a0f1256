"""`.ci/setup.py`, which `make` and every pytest run start with."""

from __future__ import annotations

import fcntl
import runpy
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


def test_concurrent_set_ups_of_one_checkout_run_one_after_the_other(tmp_path: Path) -> None:
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


def test_collecting_static_files_elsewhere_deletes_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STATIC_ROOT may be a web server's folder with other files in it."""
    setup = runpy.run_path(str(ROOT / ".ci" / "setup.py"))
    commands: list[list[str]] = []
    here = {"ROOT": tmp_path, "STATIC": tmp_path / "static", "run": commands.append}
    setup["collect_static"].__globals__.update(here)
    for name in ("static/package-lock.json", "static/bundle.mjs", "requirements.lock", "staticfiles/old.css"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for _ in range(2):
        setup["collect_static"]()
    assert not (tmp_path / "staticfiles" / "old.css").exists()
    monkeypatch.setenv("STATIC_ROOT", str(tmp_path / "www"))
    setup["collect_static"]()
    assert len(commands) == 2
    assert all("collectstatic" in command and "--clear" not in command for command in commands)
