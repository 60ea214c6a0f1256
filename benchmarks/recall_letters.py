"""An embeddings endpoint without a language model: a text's vector hashes its words and their letter n-grams.

It replaces a real model if none is available. It runs all vector code over a real socket and shows that fusion does no
harm, but not what a real model gains.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from memory.language.languages import fold_text
from memory.language.terms import STOP_WORDS
from tests.servers.embeddings_server import EmbeddingsServer

MODEL = "hashed-letters"
DIMENSIONS = 384
GROUP_SIZES = (3, 4)
_WORD = re.compile(r"\w+")


class LetterEmbeddings(EmbeddingsServer):
    def __init__(self) -> None:
        super().__init__({})
        self.dimensions = DIMENSIONS

    def vector(self, text: str) -> list[float]:
        total = np.zeros(DIMENSIONS)
        for word in _WORD.findall(fold_text(text)):
            if word not in STOP_WORDS:
                total += _word_vector(word)
        # A text of stop words only is near no text in particular.
        return total.tolist() if total.any() else np.ones(DIMENSIONS).tolist()


@lru_cache(maxsize=50_000)
def _word_vector(word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the word's vector, in which the word counts as much as all its letter n-grams together."""
    groups = list(_letter_groups(f"<{word}>"))
    vector = np.zeros(DIMENSIONS)
    for feature, weight in [(word, 1.0), *((group, len(groups) ** -0.5) for group in groups)]:
        digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
        at, sign = divmod(int.from_bytes(digest, "little"), 2)
        vector[at % DIMENSIONS] += weight if sign else -weight
    return vector


def _letter_groups(word: str) -> Iterator[str]:
    for size in GROUP_SIZES:
        yield from (word[start : start + size] for start in range(len(word) - size + 1))
