"""Unusual CSV dialects and long repetitive texts."""

from __future__ import annotations

from agents.tools.attached_files import csv_page
from memory.long_term.profile import compare_lines


def test_quoted_cells_behind_a_space_stay_one_cell() -> None:
    """People write CSV like this, and so do some programs."""
    page = csv_page('name, place\n"Ann", "Bath, UK"\n"Bob", "York, UK"\n"Cid", "Rye, UK"\n', 1)
    assert '"Bath, UK"' in page
    assert '"""' not in page


def test_cells_in_single_quotes_stay_one_cell() -> None:
    page = csv_page("name;place\n'Ann';'Bath; UK'\n'Bob';'York; UK'\n'Cid';'Rye; UK'\n", 1)
    assert "'Bath" not in page


def test_a_long_text_of_repeating_lines_shows_its_one_change() -> None:
    """No line is unique, so none divides the texts. Reporting all lines as replaced would hide the change."""
    lines = [f"line {n // 2}" for n in range(400)]
    changed = [*lines[:200], "new", *lines[200:]]
    kinds = [one.kind for one in compare_lines("\n".join(lines), "\n".join(changed))]
    assert kinds.count("removed") == 0
