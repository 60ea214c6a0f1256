"""Splits long texts into passages that can be found and recalled on their own.

Passages end between paragraphs or sentences if possible. Joined, they give the text without blank passages.
"""

from __future__ import annotations

import re

PASSAGE_CHARS = 1_200

# Places to cut, best first: between paragraphs, lines, sentences, words.
_ENDS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"[.!?…]['\"”’)]*\s+|[。！？]", r"\s+")))


def _cut_before(text: str, start: int, limit: int) -> int:
    """Return the end of the passage that begins at `start`. It is at most `limit`, and at least a third of the way
    there."""
    earliest = start + (limit - start) // 3
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, earliest, limit)]
        if ends:
            return ends[-1]
    return limit


def split_passages(text: str, max_chars: int = PASSAGE_CHARS) -> list[tuple[int, int]]:
    """Return `(start, end)` of each passage; an empty list for a blank text."""
    passages = []
    start = 0
    while start < len(text):
        end = len(text) if len(text) - start <= max_chars else _cut_before(text, start, start + max_chars)
        if text[start:end].strip():
            passages.append((start, end))
        start = end
    return passages
