"""Settings of Python's collector of reference cycles."""

from __future__ import annotations

import gc

ALLOCATIONS = 10_000
"""New objects beyond those that went, after which the youngest are looked at; 700 without this."""


def exempt_loaded_code() -> None:
    """Keep what is in memory now out of every later collection, and collect less often.

    A full collection would look at 330,000 objects of libraries that never go, which takes 0.2 s in which nobody is
    answered: 17 % of the CPU of 200 answers that begin at once (`benchmarks.streaming`), 3 % with this.
    """
    # First: what is garbage now would be kept for ever by the next line.
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, 10, 10)
