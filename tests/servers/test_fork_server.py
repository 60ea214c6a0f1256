"""A forked process behaves like a newly started one, with its own environment, arguments, output and exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import ROOT
from tests.servers.fork_server import (
    Forked,
    ForkServer,
    can_be_forked,
    connect,
    fork,
    library_server,
    sockets,
)
from tests.servers.service import run_manage
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
def test_a_forked_program_has_its_own_output_and_exit_code(tmp_path: Path, end: str, code: int) -> None:
    process = run(tmp_path, end, SHIP="Aurora")
    assert process.wait(60) == code
    assert (tmp_path / "said").read_text() == "['a', 'b'] Aurora aye\n"
    errors = (tmp_path / "errors").read_text()
    assert errors.startswith("oh\n")
    assert ("ValueError: wrong" in errors) == ("wrong" in end)
    assert "SHIP" not in os.environ


def test_a_signal_ends_a_forked_program(tmp_path: Path) -> None:
    process = run(tmp_path, "import signal; signal.pause()")
    wait_for((tmp_path / "errors").exists, what="it runs")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)  # No effect: the process has ended.


def test_the_workers_of_a_run_share_one_library_process(tmp_path: Path) -> None:
    def parent(server: ForkServer, said: Path) -> str:
        request = {
            "arguments": [str(program)],
            "env": dict(os.environ),
            "files": [os.devnull, str(said), str(said)],
        }
        assert Forked(server, server.ask(request)).wait(60) == 0
        return said.read_text()

    program = tmp_path / "program.py"
    program.write_text("import os; print(os.getppid())")
    own, other = library_server(), connect(sockets() / "libraries")
    assert other
    assert parent(own, tmp_path / "own") == parent(other, tmp_path / "other")
    with other.answers, other.socket:  # One worker disconnects.
        pass
    assert parent(own, tmp_path / "again") == parent(own, tmp_path / "once more")
    assert connect(sockets() / "nobody") is None


def test_variables_that_an_interpreter_reads_at_its_start_prevent_forking() -> None:
    assert can_be_forked({"DATA_DIR": "/somewhere"})
    assert not can_be_forked({"PYTHONPATH": "/somewhere"})


ASKED = """
import os
from django.conf import settings
from django.db import connection
from chatapp.operations.configuration import environment
print(settings.DATA_DIR, settings.LLM_MODEL or "-", connection.settings_dict["NAME"], environment.shown["LLM_MODEL"] or "-")
print(os.environ["CELERY_SKIP_CHECKS"])  # set by a module, as it is imported
"""


def test_forks_of_one_template_have_their_own_settings(tmp_path: Path) -> None:
    for name, model in (("one", ""), ("two", "test-model")):
        data = tmp_path / name
        done = run_manage({"DATA_DIR": str(data), "LLM_MODEL": model}, "shell", "-v", "0", "-c", ASKED)
        assert done.returncode == 0, done.stderr
        own = model or "-"
        assert done.stdout.split() == [str(data), own, str(data / "palimpsest.sqlite3"), own, "true"]


def test_a_forked_command_reports_invalid_settings(tmp_path: Path) -> None:
    wrong = {"LEASE_S": "soon"}, {"OPENAI_BASE_URL": "nowhere"}
    for env in wrong:
        done = run_manage({"DATA_DIR": str(tmp_path), **env}, "check")
        assert (done.returncode, done.stderr[: len(name := next(iter(env)))]) == (1, name)


OF_ONE_PROCESS = """
import os, secrets, socket, sys, time, uuid
from pathlib import Path
from tests.servers import imported_service
from django.conf import settings
root, found = str(Path.cwd()), set()
builtin = {os.getpid, os.urandom, time.time, time.time_ns, time.monotonic, socket.gethostname}
written = {one.__code__ for one in (uuid.uuid4, secrets.token_hex, secrets.token_bytes, secrets.token_urlsafe)}
def look(frame, event, what):
    caller = frame if event == "c_call" else frame.f_back
    if (event == "c_call" and what in builtin) or (event == "call" and frame.f_code in written):
        if caller.f_code.co_filename.startswith((root + "/chatapp", root + "/agents", root + "/memory")):
            found.add((Path(caller.f_code.co_filename).name, caller.f_code.co_name))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
settings.DATA_DIR
sys.setprofile(look)
imported_service.import_it()
sys.setprofile(None)
assert len(sys.modules) > 1_000
print(sorted(found))
"""


def test_imports_before_the_fork_read_no_process_id_clock_or_random_number(tmp_path: Path) -> None:
    """Otherwise two web processes would share a name that is random or made of the process id."""
    env = {**os.environ, "DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", OF_ONE_PROCESS]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
