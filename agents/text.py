"""What others say, as every database stores it and every request carries it."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable_text(text: str) -> str:
    """What no user typed, such as a model's words: NUL and lone surrogates become U+FFFD, halves that meet a pair."""
    if not UNSTORABLE.search(text):
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\x00", "\ufffd")
