"""Normalises each text that enters, so that SQLite and PostgreSQL store the same."""

from __future__ import annotations

from agents.text import UNSTORABLE
from chatapp.operations.errors import TooLarge


def normalize_text(text: str, max_chars: int, what: str = "The text") -> str:
    """Return the text with U+FFFD for NUL and lone surrogates, and \\n for line ends. Raise TooLarge."""
    if len(text) > max_chars:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {max_chars:,} are accepted.")
    # The expression looks at each character, which takes longer than all else.
    text = text.replace("\x00", "\ufffd") if text.isascii() else UNSTORABLE.sub("\ufffd", text)
    return text.replace("\r\n", "\n")


def split_half(text: str) -> tuple[str, str]:
    """Return (text without a high surrogate at its end, that surrogate): its other half may follow."""
    return (text[:-1], text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else (text, "")
