"""What a process keeps at hand of what it read from indexes. Never the record: everything on a shelf is of an edition,
and every write to the rows it was read from gives them another."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Shelved(Protocol):
    @property
    def size_bytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Shelved)


class Shelf(Generic[Kept]):
    """By owner. What was used longest ago leaves first, when all together are larger than `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._lock = Lock()

    def take(self, owner_id: int) -> Kept | None:
        with self._lock:
            if owner_id in self._kept:
                self._kept.move_to_end(owner_id)
            return self._kept.get(owner_id)

    def put(self, owner_id: int, kept: Kept) -> None:
        """Also what lies there already and has grown."""
        with self._lock:
            self._kept[owner_id] = kept
            self._kept.move_to_end(owner_id)
            size_bytes = sum(one.size_bytes for one in self._kept.values())
            while size_bytes > self._max_bytes:
                _, gone = self._kept.popitem(last=False)
                size_bytes -= gone.size_bytes
