"""Limits for each client: sizes, times, the size of incomplete requests, and when it is dropped."""

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
"""Counted for each request in addition to its body: the largest headers that Twisted accepts."""
STUCK_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes, counts and times. `route_bytes`: paths with a lower limit than `request_bytes`."""

    request_bytes: int
    frame_bytes: int
    route_bytes: Mapping[bytes, int] = field(default_factory=dict)
    anonymous_request_bytes: int = 64 * KILOBYTE
    anonymous_address_bytes: int = 1024 * KILOBYTE
    all_users_bytes: int = 512 * MEGABYTE
    """The sum of all bodies of users in this process at one time; at least that of one request."""
    all_strangers_bytes: int = 64 * MEGABYTE
    """The sum of all bodies of anonymous clients, who may have many addresses."""
    connections_per_address: int = 256
    idle_s: float = 60.0
    """Until the first byte of a request."""
    headers_s: float = 15.0
    body_s: float = 30.0
    """Until the last byte of the body, extended by a second for every `body_bytes_per_s` received."""
    body_bytes_per_s: int = 4 * KILOBYTE

    @property
    def user_bytes(self) -> int:
        return 2 * self.request_bytes

    def bytes_of_route(self, path: bytes) -> int:
        return min(self.request_bytes, self.route_bytes.get(path, self.request_bytes))


class Budget:
    """Limits the amount that each holder has at one time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[Hashable] = Counter()

    def take(self, holder: Hashable, amount: int) -> bool:
        """Take the amount and return True, or take nothing and return False if the holder has no room for it."""
        if self._held[holder] + amount > self._limit:
            return False
        self._held[holder] += amount
        return True

    def give_back(self, holder: Hashable, amount: int) -> None:
        self._held[holder] -= amount
        # Addresses are many, so do not keep those that hold nothing.
        if not self._held[holder]:
            del self._held[holder]


class Gate:
    """Blocks a writer while the transport's buffer is full. Drops a client that reads nothing for a minute.

    Registered as the producer of the transport, which calls it by Twisted's names.
    """

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

    pauseProducing = close
    resumeProducing = stopProducing = open

    async def wait(self) -> None:
        if self._opened is not None:
            # A cancelled writer must not cancel what others wait for.
            await asyncio.shield(self._opened)


def network_of(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address."""
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ip_network((int(parsed), IPV6_NETWORK_BITS), strict=False))
