"""docs/memory.md stays true: what it names exists, and each mechanism has a proof."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_context_page import PROOF, ROOT, exists_in

PAGE = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w./-]+\.py(?:::?[^`]+)?)`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("named", NAMED)
def test_what_the_page_names_exists(named: str) -> None:
    file, _, name = named.partition(":")
    assert (ROOT / file).is_file()
    assert not name or exists_in(ROOT / file, name.removeprefix(":"))


@pytest.mark.parametrize("row", ROWS, ids=[row[2:50] for row in ROWS])
def test_each_mechanism_has_a_proof(row: str) -> None:
    assert PROOF.search(row)
