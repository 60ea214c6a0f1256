"""Normalises incoming text, so that SQLite and PostgreSQL store the same."""

from __future__ import annotations

from agents.text import UNSTORABLE
from chatapp.operations.errors import TooLarge


def normalize_text(text: str, max_chars: int, what: str = "The text") -> str:
    """Replace NUL and lone surrogates with U+FFFD, and \\r\\n with \\n. Raise TooLarge."""
    if len(text) > max_chars:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {max_chars:,} are accepted.")
    # The regular expression looks at each character, and takes longer than everything else.
    text = text.replace("\x00", "\ufffd") if text.isascii() else UNSTORABLE.sub("\ufffd", text)
    return text.replace("\r\n", "\n")


def split_half(text: str) -> tuple[str, str]:
    """Return (text without a final high surrogate, that surrogate). Its other half may follow."""
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")
