"""The one normaliser every text passes at entry, so that SQLite and Postgres store the same."""

from __future__ import annotations

from agents.text import UNSTORABLE
from chatapp.operations.errors import TooLarge


def normalize_text(text: str, max_chars: int, what: str = "The text") -> str:
    """NUL and lone surrogates become U+FFFD; line ends become \\n. Raises TooLarge."""
    if len(text) > max_chars:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {max_chars:,} are accepted.")
    return UNSTORABLE.sub("\ufffd", text).replace("\r\n", "\n")


def split_half(text: str) -> tuple[str, str]:
    """The text without a surrogate at its end whose other half may still come, and that surrogate."""
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")
