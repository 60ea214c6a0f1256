"""The baseline that recall is compared with: plain BM25 with one neighbour.

It fills the budget with whole messages, best first, each with the other half of its turn: a question with the message
that follows it, an answer with the one before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from math import log

from benchmarks.recall_data import History
from memory.tokens import estimate_text

CHARS_PER_TOKEN = 4
K1 = 1.2
B = 0.75
_PIECE = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _words(text: str) -> Iterator[str]:
    for piece in _PIECE.findall(text.lower()):
        if _UNSPACED.match(piece):
            yield from (piece[at : at + 2] for at in range(max(1, len(piece) - 1)))
        else:
            yield piece


class Bm25:
    def __init__(self, history: History) -> None:
        self._texts = [message["content"] for message in history.messages]
        self._roles = [message["role"] for message in history.messages]
        self._terms = [Counter(_words(text)) for text in self._texts]
        self._lengths = [sum(terms.values()) for terms in self._terms]
        self._containing = Counter(term for terms in self._terms for term in terms)

    def fill(self, question: str, budget: int) -> list[str]:
        """Return the texts that fit beside the question."""
        tokens, chars = budget - estimate_text(question), budget * CHARS_PER_TOKEN - len(question)
        chosen: dict[int, str] = {}
        for at in self._best_first(question):
            for each in (at, at + 1 if self._roles[at] == "user" else at - 1):
                if each in chosen or not 0 <= each < len(self._texts):
                    continue
                text = self._texts[each]
                if (cost := _cost(text)) <= tokens and len(text) <= chars:
                    chosen[each] = text
                    tokens, chars = tokens - cost, chars - len(text)
        return list(chosen.values())

    def _best_first(self, question: str) -> Sequence[int]:
        words = set(_words(question))
        scores = [self._score(at, words) for at in range(len(self._texts))]
        return sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])

    def _score(self, at: int, words: set[str]) -> float:
        count, average = len(self._texts), sum(self._lengths) / len(self._texts)
        norm = K1 * (1 - B + B * self._lengths[at] / average)
        return sum(
            log(1 + (count - self._containing[word] + 0.5) / (self._containing[word] + 0.5))
            * (self._terms[at][word] * (K1 + 1))
            / (self._terms[at][word] + norm)
            for word in words & self._terms[at].keys()
        )


@cache
def _cost(text: str) -> int:
    return estimate_text(text)
