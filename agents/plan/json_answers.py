"""Finds the JSON a model was asked for in what it wrote: bare, fenced, or amid prose; and cleans its texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_TRIES = 50
"""Places at which a value may begin. Prose full of braces must not cost a scan for each of them."""

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


def find_values(text: str) -> Iterator[Any]:
    """Every outermost object and array, in order."""
    text = _THOUGHTS.sub("", text)
    at, tries = 0, 0
    while (start := _next_opening(text, at)) is not None and tries < MAX_TRIES:
        tries += 1
        try:
            value, at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        yield value


def _next_opening(text: str, at: int) -> int | None:
    found = re.compile(r"[{\[]").search(text, at)
    return found.start() if found else None
