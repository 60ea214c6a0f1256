"""Limits for each client: sizes, times, what it may hold before its request is complete, and when it is dropped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
IPV6_NETWORK_BITS = 64
HEADERS_BYTES = 16 * KILOBYTE
"""Counted for each request besides its body: the largest headers that Twisted accepts."""
STUCK_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`route_bytes`: paths whose bodies are smaller than `request_bytes`."""

    request_bytes: int
    frame_bytes: int
    route_bytes: Mapping[bytes, int] = field(default_factory=dict)
    anonymous_request_bytes: int = 64 * KILOBYTE
    anonymous_address_bytes: int = 1024 * KILOBYTE
    all_users_bytes: int = 512 * MEGABYTE
    """Of all bodies of users that this process holds at a time; at least that of one request."""
    all_strangers_bytes: int = 64 * MEGABYTE
    """Of all bodies of strangers: their addresses may be many."""
    connections_per_address: int = 256
    idle_s: float = 60.0
    """Until the first byte of a request."""
    headers_s: float = 15.0
    body_s: float = 30.0
    """Until the last byte of the body, prolonged by a second for every `body_bytes_per_s` received."""
    body_bytes_per_s: int = 4 * KILOBYTE

    @property
    def user_bytes(self) -> int:
        return 2 * self.request_bytes

    def bytes_of_route(self, path: bytes) -> int:
        return min(self.request_bytes, self.route_bytes.get(path, self.request_bytes))


class Budget:
    """Bounds the amount that each holder has at the same time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[Hashable] = Counter()

    def take(self, holder: Hashable, amount: int) -> bool:
        """Return whether the holder had room for the amount; if not, nothing is taken."""
        if self._held[holder] + amount > self._limit:
            return False
        self._held[holder] += amount
        return True

    def give_back(self, holder: Hashable, amount: int) -> None:
        self._held[holder] -= amount
        # Addresses are many: none that holds nothing stays in memory.
        if not self._held[holder]:
            del self._held[holder]


class Gate:
    """Holds a writer back while the transport's buffer is full. Drops a reader that takes nothing for a minute."""

    def __init__(self, drop: Callable[[], None]) -> None:
        self._drop = drop
        self._opened: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_closed(self) -> bool:
        return self._opened is not None

    def close(self) -> None:
        if self._opened is None:
            loop = asyncio.get_running_loop()
            self._opened = loop.create_future()
            self._timer = loop.call_later(STUCK_S, self._drop)

    def open(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._opened is not None:
            self._opened.set_result(None)
            self._opened = None

    async def wait(self) -> None:
        if self._opened is not None:
            # A writer that is cancelled must not cancel what others wait for.
            await asyncio.shield(self._opened)


def network_of(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network that an IPv6 client chooses from."""
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ip_network((int(parsed), IPV6_NETWORK_BITS), strict=False))
