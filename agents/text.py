"""What others say, as every database stores it and every request carries it."""

from __future__ import annotations

import math
import re
from typing import Any

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable_text(text: str) -> str:
    """What no user typed, such as a model's words: NUL and lone surrogates become U+FFFD, halves that meet a pair."""
    if not UNSTORABLE.search(text):
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\x00", "\ufffd")


def is_storable(value: Any) -> bool:
    """Whether every database takes it as JSON: without NUL, lone surrogates, infinite numbers and what is no number."""
    if isinstance(value, str):
        return not UNSTORABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_storable(name) and is_storable(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_storable(inner) for inner in value)
