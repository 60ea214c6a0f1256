"""Each mechanism of docs/mechanisms.toml has a test, and each mark in a test names one of them."""

from __future__ import annotations

from tests.mechanisms import find_unproved


def test_every_mechanism_has_a_test_and_every_mark_a_mechanism() -> None:
    assert find_unproved() == []
