"""The one normaliser every text passes at entry, so that SQLite and Postgres store the same."""

from __future__ import annotations

import math
from typing import Any

from agents.text import UNSTORABLE
from chatapp.errors import TooLarge


def normalize_text(text: str, max_chars: int, what: str = "The text") -> str:
    """NUL and lone surrogates become U+FFFD; line ends become \\n. Raises TooLarge."""
    if len(text) > max_chars:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {max_chars:,} are accepted.")
    return UNSTORABLE.sub("\ufffd", text).replace("\r\n", "\n")


def is_storable(value: Any) -> bool:
    """Whether every database takes it as JSON: without NUL, lone surrogates, infinite numbers and what is no number."""
    if isinstance(value, str):
        return not UNSTORABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_storable(name) and is_storable(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_storable(inner) for inner in value)


def split_half(text: str) -> tuple[str, str]:
    """The text without a surrogate at its end whose other half may still come, and that surrogate."""
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")
