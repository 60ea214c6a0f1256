"""find_matches searches with a model's pattern in bounded memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from agents.tools.offloaded import find_matches
from agents.tools.protocol import ToolFailure

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
from agents.tools.offloaded import find_matches
from agents.tools.protocol import ToolFailure
try:
    print(find_matches("aaa bbb " * 1_000, sys.argv[1]))
except ToolFailure as told:
    print(told)
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:(?:(?:(?:a{100}){100}){100}){100})",
        "(?R)?a",
        "(?x)# [\n(?:(?:(?:a{200}){200}){200}) # ]",
        "(?ix:(?:(?:a{2 00}){2 00}){2 00})",
    ],
)
def test_a_short_pattern_takes_bounded_memory(pattern):
    """A pattern of 38 characters could make `regex` take all memory of the machine. The limit here turns that into a
    MemoryError, reported as a pattern that takes too long; without a limit the server would be killed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, pattern],
        check=False,
        cwd=ROOT,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert "too long" not in done.stdout


@pytest.mark.parametrize(
    "pattern",
    [
        "(?R)?a",
        "(?0)?a",
        "(a(?1)?)",
        "(a(?-1)?)",
        "(?+1)?(a)",
        "(?<n>a(?&n)?)",
        "(?P<n>a(?P>n)?)",
        "(?P<n>a(?P&n)?)",
        "(?(DEFINE)(?<n>a(?&n)?))(?&n)",
        "(b)?(?(1)a|(?R))a",
        r"\\(?R)?a",
        "[[](?R)?a]?",
        "(?#[)(?R)?a",
        "(?x)(?P >n)?(?<n>a)",
        "(?x)(?- 1)?(a)",
    ],
)
def test_calls_of_groups_are_refused_in_every_form(pattern):
    """Each level of recursion takes memory, and the text decides the depth."""
    with pytest.raises(ToolFailure, match="must not"):
        find_matches("text", pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\(?0\d+\)?", "(030)"),
        (r"\\\(?R", r"\(R"),
        ("(?i)a(?-i:b)(?P<n>c)(?P=n)", "Abcc"),
        ("(?<=x)y(?!z)(?>a)(?|b|c)", "xyab"),
        ("(a)?(?(1)b|c)", "ab"),
        ("[?(]R", "(R"),
    ],
)
def test_patterns_that_only_look_like_calls_of_groups_are_accepted(pattern, text):
    assert find_matches(text, pattern).startswith("1 matches")
