"""memory/long_term/profile.py: compare_lines uses `SequenceMatcher`, which takes cubic time for many equal lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from memory.long_term.profile import LineChange, compare_lines
from tests.servers.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SPACED = ("'- item %d\\n\\n'", "'- thing %d\\n\\n\\n'")
ALIKE = ("'a\\nb\\n'", "'b\\na\\na\\n'")


@pytest.mark.parametrize(("before", "after"), [SPACED, ALIKE])
def test_two_versions_of_a_profile_are_compared_in_bounded_time(before: str, after: str):
    """Compare some 10 to 20 KB of short lines with blank lines between; profiles may be far longer. The page of a
    version and each consolidation compare all versions before it."""
    program = (
        "from memory.long_term.profile import compare_lines\n"
        "def text(line): return ''.join(line % at if '%' in line else line for at in range(1_500))\n"
        f"compare_lines(text({before}), text({after}))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)


def test_a_comparison_contains_all_lines_of_both_versions():
    before = [f"- Fact {at % 90}" if at % 3 else "" for at in range(900)]
    after = ["- New", *before[40:300], "", *before[310:700], "- Newer", *before[650:]]
    changes = compare_lines("\n".join(before), "\n".join(after))
    assert [change.text for change in changes if change.kind != "added"] == before
    assert [change.text for change in changes if change.kind != "removed"] == after
    unique = [f"- Fact {at}" for at in range(900)]
    moved = [*unique[:100], *unique[101:500], "- New", *unique[500:]]
    told = [change for change in compare_lines("\n".join(unique), "\n".join(moved)) if change.kind != "same"]
    assert told == [LineChange("removed", "- Fact 100"), LineChange("added", "- New")]
