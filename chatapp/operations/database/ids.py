"""Generates ids as UUIDs of version 7, so that new rows are at the end of an index in the order of their creation. Also
names processes for leases."""

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
    """Generates ids that strictly increase within one process.

    The 48 bits of milliseconds are followed by a counter of 42 bits and 32 random bits (RFC 9562, section 6.2, method
    1). The counter starts at a random value in each millisecond. Within a millisecond, and while the clock is behind
    the last id, the counter increases by one. A full counter carries into the milliseconds. Ids of two processes are
    not ordered within a millisecond.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        # Milliseconds and counter of the last id, in one number so that a fork sees both or neither.
        self._last = 0
        os.register_at_fork(after_in_child=self._leave_parent)

    def new_numbers(self, count: int) -> list[int]:
        """Return `count` ids as numbers of 128 bits, each greater than all earlier ones of this generator."""
        with self._lock:
            now_ms = self._clock_ns() // 1_000_000
            is_later = now_ms > self._last >> _COUNTER_BITS
            first = _first_of(now_ms) if is_later else self._last + 1
            self._last = first + count - 1
        # One system call for all ids.
        random = memoryview(os.urandom(count * _RANDOM_BYTES)).cast("I")
        return [_as_version_7(first + at << _RANDOM_BITS | each) for at, each in enumerate(random)]

    def new_id(self) -> uuid.UUID:
        """Return an id greater than all earlier ones of this generator."""
        return uuid.UUID(int=self.new_numbers(1)[0])

    def _leave_parent(self) -> None:
        """Continue at a random value in the next millisecond, because parent and child have the same counter."""
        self._lock = threading.Lock()  # another thread of the parent may have held the lock
        self._last = _first_of((self._last >> _COUNTER_BITS) + 1)


def _first_of(millisecond: int) -> int:
    """Return the millisecond with a random counter from its lower half, which leaves 2**41 ids before it is full."""
    seed = int.from_bytes(os.urandom(6), "big") >> 48 - (_COUNTER_BITS - 1)
    return millisecond << _COUNTER_BITS | seed


def _as_version_7(value: int) -> int:
    """Insert the version and the variant between the 48, 12 and 62 bits of RFC 9562, section 5.7."""
    milliseconds, rand_a, rand_b = value >> 74, value >> 62 & 0xFFF, value & (1 << 62) - 1
    return milliseconds << 80 | 0x7 << 76 | rand_a << 64 | 0x2 << 62 | rand_b


_ids = IdGenerator()


def new_id() -> uuid.UUID:
    """Return an id greater than all earlier ones of this process."""
    return _ids.new_id()


def new_hex_ids(count: int) -> list[str]:
    """Return `count` ids as 32 hexadecimal digits. Creating UUID objects takes longer than generating the ids."""
    return [f"{number:032x}" for number in _ids.new_numbers(count)]


def name_process() -> str:
    """Return a unique name of this process, for the leases of runs and compactions. A fork gets its own."""
    return _name_process(os.getpid())


@cache
def _name_process(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{secrets.token_hex(4)}"


def id_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def first_id_at(moment: datetime) -> uuid.UUID:
    """Return the smallest id that can be generated at that moment. Rows created since then have greater ids."""
    return uuid.UUID(int=_as_version_7(int(moment.timestamp() * 1000) << 74))
