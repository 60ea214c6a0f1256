"""Looks for many quotes in many texts at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

FEW = 64
"""So many are looked for one by one: that is faster than to look at each place of a text."""
START_CHARS = 12


class Quotes:
    """However many, the answer is the one of looking for each."""

    def __init__(self, quotes: Iterable[str]) -> None:
        self._few: list[str] = []
        self._by_start: dict[str, list[str]] = defaultdict(list)
        distinct = set(quotes)
        for quote in distinct:
            if len(distinct) <= FEW or len(quote) < START_CHARS:
                self._few.append(quote)
            else:
                self._by_start[quote[:START_CHARS]].append(quote)

    def are_in(self, text: str) -> bool:
        """Whether one of them is."""
        if any(quote in text for quote in self._few):
            return True
        near = self._by_start.keys() & _starts(text) if self._by_start else ()
        return any(quote in text for start in near for quote in self._by_start[start])


def _starts(text: str) -> set[str]:
    """What stands at each place where a quote may begin."""
    return {text[start : start + START_CHARS] for start in range(len(text) - START_CHARS + 1)}
