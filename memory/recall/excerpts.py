"""Chooses the sentence of a found text that a search result shows, and marks the words of the query in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from memory.language.languages import UNSPACED
from memory.language.sentences import split_sentences
from memory.language.terms import SIGNS, Analyzer, prefix_of

MAX_EXCERPT_CHARS = 280
_CHARS_BEFORE = 80
_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])(?:[^\W_]|[{SIGNS}]))+")
_MARKS = re.compile(
    r"^[^\S\n]*(?:#{1,6}|>+|[-*+]|```\w*)(?:[^\S\n]+|$)|(?<!\s)\*{1,3}|\*{1,3}(?!\s)|`{1,3}", re.MULTILINE
)
"""Markdown headings, quotations, lists, fences, emphasis and code."""
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\)")
# A lookahead, so that pairs overlap.
_UNSPACED_PAIR = re.compile(rf"(?=([{UNSPACED}]{{2}}))")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an excerpt. `is_hit`: it matches the query."""

    text: str
    is_hit: bool


@dataclass(frozen=True, slots=True)
class _Marked:
    sentence: str
    spans: list[tuple[int, int]]
    words: Set[str]


def excerpt_of(text: str, query: str, analyzer: Analyzer) -> list[Span]:
    """Return the sentence with most words of the query, in spans, without line breaks and Markdown; if no word matches,
    the first sentence without hits.

    Words match by their stems, or by their first letters if no stem matches.
    """
    asked = frozenset(analyzer.words(query))
    # A text that consists of marks stays unchanged.
    text = _MARKS.sub("", _LINK.sub(r"\1", text)) or text
    sentences = split_sentences(text) or [text]
    for wanted in (asked, frozenset(filter(None, map(prefix_of, asked)))):
        marked = [_mark(sentence, wanted, analyzer) for sentence in sentences]
        best = max(marked, key=lambda one: (len(one.words), len(one.spans)))
        if best.words:
            return list(_cut(best.sentence, best.spans))
    return list(_cut(next((one for one in sentences if one.strip()), text), []))


def _mark(sentence: str, wanted: Set[str], analyzer: Analyzer) -> _Marked:
    spans, words = [], set[str]()
    for match in (*_WORD.finditer(sentence), *_UNSPACED_PAIR.finditer(sentence)):
        start = match.start()
        found = match[1] if match.lastindex else match[0]
        terms = set(analyzer.words(found))
        hits = wanted & (terms | {prefix for term in terms if (prefix := prefix_of(term))})
        if hits:
            spans.append((start, start + len(found)))
            words |= hits
    return _Marked(sentence, _joined(sorted(spans)), words)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, with overlapping and adjacent ones merged."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _cut(sentence: str, spans: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield the part around the first hit, with an ellipsis at each end that is cut."""
    end = len(sentence.rstrip())
    first = 0
    if end > MAX_EXCERPT_CHARS and spans:
        first = max(0, min(spans[0][0] - _CHARS_BEFORE, end - MAX_EXCERPT_CHARS))
    last = min(end, first + MAX_EXCERPT_CHARS)
    at = first
    before = "…" if first else ""
    for start, stop in spans:
        if stop > last:
            break
        if before or start > at:
            yield Span(before + _in_one_line(sentence[at:start]), is_hit=False)
        yield Span(_in_one_line(sentence[start:stop]), is_hit=True)
        at, before = stop, ""
    after = "…" if last < end else ""
    if before or at < last or after:
        yield Span(before + _in_one_line(sentence[at:last]) + after, is_hit=False)


def _in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
