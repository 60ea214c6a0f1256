"""Looks for many quotes in many texts at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

FEW = 64
"""So many are looked for one by one: that is faster than to look at each word of a text."""
START_CHARS = 12
_WORD = re.compile(r"(?<!\w)\w")


class Quotes:
    """Of many, those are found that begin with a word of the text."""

    def __init__(self, quotes: Iterable[str]) -> None:
        self._few: list[str] = []
        self._by_start: dict[str, list[str]] = defaultdict(list)
        distinct = set(quotes)
        for quote in distinct:
            start = _starts(quote)[:1]
            if len(distinct) <= FEW or not start or len(start[0]) < START_CHARS:
                self._few.append(quote)
            else:
                self._by_start[start[0]].append(quote)

    def are_in(self, text: str) -> bool:
        """Whether one of them is."""
        if any(quote in text for quote in self._few):
            return True
        near = self._by_start.keys() & set(_starts(text)) if self._by_start else ()
        return any(quote in text for start in near for quote in self._by_start[start])


def _starts(text: str) -> list[str]:
    """What stands at each beginning of a word."""
    return [text[found.start() : found.start() + START_CHARS] for found in _WORD.finditer(text)]
