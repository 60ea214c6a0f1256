"""Settings of Python's cyclic garbage collector."""

from __future__ import annotations

import gc

ALLOCATIONS = 10_000
"""Net new objects after which the youngest generation is collected. The default is 700."""


def exempt_loaded_code() -> None:
    """Exclude all current objects from later collections, and collect less often.

    A full collection would traverse 330,000 objects of libraries that are never freed, and block all answers for 0.2 s.
    This takes 17 % of the CPU when 200 answers begin at once (`benchmarks.streaming`), and 3 % with these settings.
    """
    # Collect first, because `freeze` would keep current garbage forever.
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, 10, 10)
