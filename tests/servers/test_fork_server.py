"""A forked process is as one that begins from nothing: its environment, arguments, output and exit code are its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.servers.fork_server import Forked, can_be_forked, fork
from tests.servers.waiting import wait_for

PROGRAM = """
import os, sys
assert __name__ == "__main__" and os.getpgid(0) == os.getpid()
print(sys.argv[1:], os.environ.get("SHIP"), sys.stdin.read())
print("oh", file=sys.stderr)
{end}
"""


def run(tmp_path: Path, end: str, **env: str) -> Forked:
    program, given = tmp_path / "program.py", tmp_path / "given"
    program.write_text(PROGRAM.format(end=end))
    given.write_text("aye")
    said, errors = tmp_path / "said", tmp_path / "errors"
    return fork([str(program), "a", "b"], {**os.environ, **env}, said=said, errors=errors, stdin=given)


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError('wrong')", 1)])
def test_it_says_and_ends_as_the_program_does(tmp_path: Path, end: str, code: int) -> None:
    process = run(tmp_path, end, SHIP="Aurora")
    assert process.wait(60) == code
    assert (tmp_path / "said").read_text() == "['a', 'b'] Aurora aye\n"
    errors = (tmp_path / "errors").read_text()
    assert errors.startswith("oh\n")
    assert ("ValueError: wrong" in errors) == ("wrong" in end)
    assert "SHIP" not in os.environ


def test_it_is_ended_by_a_signal(tmp_path: Path) -> None:
    process = run(tmp_path, "import signal; signal.pause()")
    wait_for((tmp_path / "errors").exists, what="it runs")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)  # of one that has ended, to nobody


def test_what_an_interpreter_reads_as_it_starts_is_not_forked() -> None:
    assert can_be_forked({"DATA_DIR": "/somewhere"})
    assert not can_be_forked({"PYTHONPATH": "/somewhere"})
