"""Tables and texts in unusual forms are read and compared as what they are."""

from __future__ import annotations

from agents.tools.attached_files import csv_page
from memory.profile import compare_lines


def test_quoted_cells_behind_a_space_stay_one_cell() -> None:
    """As people write them, and some programs."""
    page = csv_page('name, place\n"Ann", "Bath, UK"\n"Bob", "York, UK"\n"Cid", "Rye, UK"\n', 1)
    assert '"Bath, UK"' in page
    assert '"""' not in page


def test_cells_in_single_quotes_stay_one_cell() -> None:
    page = csv_page("name;place\n'Ann';'Bath; UK'\n'Bob';'York; UK'\n'Cid';'Rye; UK'\n", 1)
    assert "'Bath" not in page


def test_a_long_text_of_repeating_lines_shows_its_one_change() -> None:
    """All lines are there twice, so that none of them divides the texts: each is told as replaced."""
    lines = [f"line {n // 2}" for n in range(400)]
    changed = [*lines[:200], "new", *lines[200:]]
    kinds = [one.kind for one in compare_lines("\n".join(lines), "\n".join(changed))]
    assert kinds.count("removed") == 0
