"""agents/tools/offloaded.py: find_matches compiles the model's pattern without any bound."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from agents.tools.offloaded import find_matches
from agents.tools.protocol import ToolFailure
try:
    print(find_matches("aaa bbb " * 1_000, "(?:(?:(?:(?:a{100}){100}){100}){100})"))
except ToolFailure as told:
    print(told)
"""


def test_a_short_pattern_with_nested_counts_takes_bounded_memory():
    """ "in bounded time for any pattern": 38 characters make `regex` take all memory of the machine (the limit of 3 GB
    here makes a MemoryError of it; without one the server is killed)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, cwd=ROOT, timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-300:]
