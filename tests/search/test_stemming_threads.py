"""Answers, searches and workers stem words in several threads at once; each word must get its own stem."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Barrier

import pytest
import snowballstemmer

from chatapp.recall.analysis import analyzer

THREADS = 8
BEGINNINGS = (
    "quax",
    "brindl",
    "tavorn",
    "melisk",
    "hobber",
    "strune",
    "gladdow",
    "pelvar",
    "ondrif",
    "carrow",
)
MIDDLES = ("at", "el", "iz", "ov", "und", "em")
ENDINGS = ("ing", "ingly", "ations", "fulness", "ousli", "edly", "ies", "ements", "ational", "izers")
WORDS = ["".join(parts) for parts in product(BEGINNINGS, MIDDLES, ENDINGS)]


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Switch threads often enough to interrupt the stemming of a word, as on a busy machine."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_concurrent_threads_get_the_same_stems_as_one_thread(eager_switching: None):
    together = Barrier(THREADS)

    def read(number: int) -> list[str]:
        together.wait()
        return [stem for word in WORDS[number::THREADS] for stem in analyzer.words(word)]

    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(read, range(THREADS)))
    stem = snowballstemmer.stemmer("english").stemWord
    assert found == [[stem(word) for word in WORDS[number::THREADS]] for number in range(THREADS)]
    assert [analyzer.words(word) for word in WORDS] == [[stem(word)] for word in WORDS], "what is remembered"
