"""Numbers in the sentences of commands."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return such as "1 file" or "2 files"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
