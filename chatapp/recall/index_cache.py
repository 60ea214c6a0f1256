"""A cache of what a process read from indexes.

What is cached carries the edition of its rows, and every write to the rows gives them another edition: whoever reads
the cache compares the two.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def size_bytes(self) -> int: ...


Cached = TypeVar("Cached", bound=Sized)


class IndexCache(Generic[Cached]):
    """By owner. When all together are larger than `max_bytes`, the least recently used are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[int, Cached] = OrderedDict()
        self._lock = Lock()

    def get(self, owner_id: int) -> Cached | None:
        with self._lock:
            if owner_id in self._values:
                self._values.move_to_end(owner_id)
            return self._values.get(owner_id)

    def put(self, owner_id: int, value: Cached) -> None:
        """Store a value, or one that is stored already and has grown."""
        with self._lock:
            self._values[owner_id] = value
            self._values.move_to_end(owner_id)
            size_bytes = sum(each.size_bytes for each in self._values.values())
            while size_bytes > self._max_bytes:
                _, oldest = self._values.popitem(last=False)
                size_bytes -= oldest.size_bytes
