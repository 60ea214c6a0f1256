"""Write a text as references to pieces of stored texts that it repeats, so that these are not stored again.

All texts are compared as they appear inside a JSON string, so that a whole JSON text can contain references.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from agents.arrays import np, npt

LEAST_CHARS = 8
"""Shorter repetitions are referenced only if they are a whole source."""
LEAST_WHOLE_CHARS = 2
MOST_OCCURRENCES = 4
"""Occurrences of one beginning that are compared to find the longest repetition."""
SEPARATOR = "\x00"
"""JSON escapes it, so that no repetition extends from one source into the next."""

_FACTOR = 0x9E3779B97F4A7C15
"""Factor of the hash: odd and irregular, so that the first bits of hashes differ between texts, too."""
_SIEVE_BITS = 20
"""The first bits of a hash exclude most places that repeat nothing. The table for them takes a megabyte."""

Segment = str | tuple[str, int, int]
"""Literal text, or (key of a source, start, end) of a repeated piece."""


def escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class Sources:
    """The texts that can be referenced, by key."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        escaped = {key: escape(text) for key, text in texts.items() if len(text) >= LEAST_WHOLE_CHARS}
        self._keys = list(escaped)
        self._text = SEPARATOR.join(escaped.values())
        self._starts: list[int] = []
        at = 0
        for text in escaped.values():
            self._starts.append(at)
            at += len(text) + len(SEPARATOR)
        self._short = {text: key for key, text in escaped.items() if len(text) < LEAST_CHARS}
        # An alternation takes the first match, so the longest come first.
        longest_first = sorted(self._short, key=len, reverse=True)
        self._any_short = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    @cached_property
    def _hashes(self) -> npt.NDArray[np.uint64]:
        return hash_beginnings(self._text)

    def places_of(self, text: str) -> Mapping[str, Sequence[int]]:
        """Return where the first repetitions of each LEAST_CHARS characters of a text are, ascending.

        A single pass over the sources finds all: separate searches would take the product of both lengths.
        """
        wanted = np.unique(hash_beginnings(text))
        if not len(wanted):
            return {}
        shift = np.uint64(64 - _SIEVE_BITS)
        sieve = np.zeros(1 << _SIEVE_BITS, dtype=np.bool_)
        sieve[wanted >> shift] = True
        at = np.flatnonzero(sieve[self._hashes >> shift])
        which = np.searchsorted(wanted, self._hashes[at])
        is_wanted = wanted[np.minimum(which, len(wanted) - 1)] == self._hashes[at]
        at, which = at[is_wanted], which[is_wanted]
        # Use the smallest integer type that fits: numpy sorts 16 bits by radix.
        order = np.argsort(which.astype(np.min_scalar_type(len(wanted))), kind="stable")
        at, which = at[order], which[order]
        same_as_earlier = which[MOST_OCCURRENCES:] == which[:-MOST_OCCURRENCES]
        is_first = np.append(np.ones(min(len(at), MOST_OCCURRENCES), np.bool_), ~same_as_earlier)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place in at[is_first].tolist():
            # Key by the characters themselves, because two texts may share a hash.
            places[self._text[place : place + LEAST_CHARS]].append(place)
        return places

    def find(self, text: str, at: int, places: Mapping[str, Sequence[int]]) -> tuple[str, int, int] | None:
        """Return (key, start, end) of the longest repetition of `text` from `at` on; None if there is none. `places`
        must include those of the text."""
        best_start, best_length = -1, 0
        for found in places.get(text[at : at + LEAST_CHARS], ()):
            length = _common_length(text, at, self._text, found)
            if length > best_length:
                best_start, best_length = found, length
        if best_length:
            index = bisect_right(self._starts, best_start) - 1
            start = best_start - self._starts[index]
            return self._keys[index], start, start + best_length
        if self._short and (whole := self._any_short.match(text, at)):
            return self._short[whole[0]], 0, len(whole[0])
        return None


def hash_beginnings(text: str) -> npt.NDArray[np.uint64]:
    """Return a hash of the LEAST_CHARS characters that begin at each position of a text."""
    # UTF-32 has four bytes for each character, so that positions are those of the text.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    hashes = np.zeros(max(0, len(codes) - LEAST_CHARS + 1), np.uint64)
    for start in range(LEAST_CHARS):
        hashes *= np.uint64(_FACTOR)
        hashes += codes[start : start + len(hashes)]
    return hashes


def _common_length(text: str, at: int, other: str, start: int) -> int:
    most = min(len(text) - at, len(other) - start)
    # Compare slices, which is done in C, and search for the length by doubling and halving.
    low, high = 0, 1
    while high < most and text[at + low : at + high] == other[start + low : start + high]:
        low, high = high, 2 * high
    high = min(high, most)
    while low < high:
        middle = (low + high + 1) // 2
        if text[at + low : at + middle] == other[start + low : start + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def write_references(texts: Sequence[str], sources: Sources) -> list[list[Segment]]:
    """Return the segments of each text. One pass over the sources finds the repetitions of all texts."""
    places = sources.places_of(SEPARATOR.join(texts))
    return [_write_segments(text, sources, places) for text in texts]


def _write_segments(text: str, sources: Sources, places: Mapping[str, Sequence[int]]) -> list[Segment]:
    segments: list[Segment] = []
    own = at = 0
    while at < len(text):
        found = sources.find(text, at, places)
        if found is None:
            at += 1
            continue
        segments += [text[own:at], found] if own < at else [found]
        at += found[2] - found[1]
        own = at
    return [*segments, text[own:]] if own < at else segments


def keys_in(segments: Sequence[Segment]) -> Iterator[str]:
    return (segment[0] for segment in segments if not isinstance(segment, str))


def read_references(segments: Sequence[Segment], texts: Mapping[str, str]) -> str:
    """Return the text that the segments make with the current `texts`. Pieces of missing texts are left out."""
    escaped = {key: escape(texts.get(key, "")) for key in set(keys_in(segments))}
    return "".join(
        segment if isinstance(segment, str) else escaped[segment[0]][segment[1] : segment[2]]
        for segment in segments
    )
