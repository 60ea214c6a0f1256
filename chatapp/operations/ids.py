"""Makes ids, UUIDs of version 7, so that new rows are at the end of an index in the order they were made; and names the
process that holds a lease."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

_COUNTER_BITS = 42
_RANDOM_BYTES = 4
_RANDOM_BITS = 8 * _RANDOM_BYTES


class IdGenerator:
    """Makes ids that increase strictly within one process.

    After the 48 bits of milliseconds come a counter of 42 bits and 32 random bits (RFC 9562, section 6.2, method 1).
    The counter starts anew at random with each millisecond. In between, and while the clock stands behind the last id,
    it goes up by one, and a full counter carries into the milliseconds. Ids of two processes are not ordered within a
    millisecond.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._last = (
            0  # milliseconds and counter of the last id; one number, so that a fork sees all of it or nothing
        )
        os.register_at_fork(after_in_child=self._leave_parent)

    def new_numbers(self, count: int) -> list[int]:
        """Return so many ids as numbers of 128 bits, each greater than every earlier one of this generator."""
        with self._lock:
            now_ms = self._clock_ns() // 1_000_000
            is_later = now_ms > self._last >> _COUNTER_BITS
            first = _first_of(now_ms) if is_later else self._last + 1
            self._last = first + count - 1
        # One call of the system for all of them.
        random = memoryview(os.urandom(count * _RANDOM_BYTES)).cast("I")
        return [_as_version_7(first + at << _RANDOM_BITS | each) for at, each in enumerate(random)]

    def new_id(self) -> uuid.UUID:
        """Return an id greater than every earlier one of this generator."""
        return uuid.UUID(int=self.new_numbers(1)[0])

    def _leave_parent(self) -> None:
        """Take the next millisecond and another start: parent and child would go on with the same counter."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self._last = _first_of((self._last >> _COUNTER_BITS) + 1)


def _first_of(millisecond: int) -> int:
    """Return a random start in the lower half of the counter, which leaves 2**41 ids before it is full."""
    seed = int.from_bytes(os.urandom(6), "big") >> 48 - (_COUNTER_BITS - 1)
    return millisecond << _COUNTER_BITS | seed


def _as_version_7(value: int) -> int:
    """Put the version and the variant between the 48, 12 and 62 bits that RFC 9562, section 5.7, leaves free."""
    milliseconds, rand_a, rand_b = value >> 74, value >> 62 & 0xFFF, value & (1 << 62) - 1
    return milliseconds << 80 | 0x7 << 76 | rand_a << 64 | 0x2 << 62 | rand_b


_ids = IdGenerator()


def new_id() -> uuid.UUID:
    """Return an id greater than every earlier one of this process."""
    return _ids.new_id()


def new_hex_ids(count: int) -> list[str]:
    """Return so many ids in one go, as their 32 hexadecimal digits: making a UUID of each takes longer than the id."""
    return [f"{number:032x}" for number in _ids.new_numbers(count)]


def name_process() -> str:
    """Return a name that no other process has, for the leases of runs and compactions. A fork gets its own."""
    return _name_process(os.getpid())


@cache
def _name_process(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{secrets.token_hex(4)}"


def id_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def first_id_at(moment: datetime) -> uuid.UUID:
    """Return the smallest id that can be made at that moment: rows since then have greater ones."""
    return uuid.UUID(int=_as_version_7(int(moment.timestamp() * 1000) << 74))
