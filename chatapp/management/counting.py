"""Formats counts for the output of commands."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return e.g. "1 file" or "2 files"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
