"""The one normaliser every text passes at entry, so that SQLite and Postgres store the same."""

from __future__ import annotations

import re

from chatapp.errors import TooLarge

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def normalize_text(text: str, max_chars: int, what: str = "The text") -> str:
    """NUL and lone surrogates become U+FFFD; line ends become \\n. Raises TooLarge."""
    if len(text) > max_chars:
        raise TooLarge(f"{what} has {len(text):,} characters; at most {max_chars:,} are accepted.")
    return _UNSTORABLE.sub("\ufffd", text).replace("\r\n", "\n")
