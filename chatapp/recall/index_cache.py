"""A cache of index data in this process.

A cached value has the edition of its rows. Every write to the rows changes their edition, and readers of the cache
compare the two.
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
    """Values by owner. If all together exceed `max_bytes`, the least recently used are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[int, Cached] = OrderedDict()
        # Sizes by owner, so that a change needs no sum over all values.
        self._sizes: dict[int, int] = {}
        self._size_bytes = 0
        self._lock = Lock()

    def get(self, owner_id: int) -> Cached | None:
        with self._lock:
            if owner_id in self._values:
                self._values.move_to_end(owner_id)
            return self._values.get(owner_id)

    def put(self, owner_id: int, value: Cached) -> None:
        """Store a value, or update the size of a stored one that has grown."""
        with self._lock:
            self._values[owner_id] = value
            self._values.move_to_end(owner_id)
            self._resize(owner_id, value.size_bytes)
            # If the new value alone is too large, it is dropped, too, and read again each time.
            while self._size_bytes > self._max_bytes:
                oldest, _ = self._values.popitem(last=False)
                self._resize(oldest, 0)

    def _resize(self, owner_id: int, size_bytes: int) -> None:
        self._size_bytes += size_bytes - self._sizes.pop(owner_id, 0)
        if size_bytes:
            self._sizes[owner_id] = size_bytes
