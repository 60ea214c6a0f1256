"""Requests to addresses that others chose: the host is checked by name, its address by what it resolves to, and the
connection goes to exactly the address that was checked. Every redirect passes the same way.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import httpx2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

USUAL_PORTS = frozenset({80, 443})
_EMBEDDING = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
"""NAT64 and the old compatible form: the last four bytes are an IPv4 address."""
_METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192"))
)
"""Where clouds keep the machine's credentials: no operator means these."""


class ForbiddenHost(Exception):
    """The message says which host, and why it is not asked."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """`docs.python.org`, `*.python.org` for what is below it, `*` for all; `:8080` for another port than 80 or 443.

    `hosts` are asked at public addresses only; `own_hosts` wherever they lie, but never by a pattern.
    """

    hosts: tuple[str, ...] = ()
    own_hosts: tuple[str, ...] = ()

    def check_name(self, host: str, port: int) -> None:
        """Raises ForbiddenHost."""
        if not self.is_own(host, port) and not any(_matches(rule, host, port) for rule in self.hosts):
            raise ForbiddenHost(f"{host}:{port} is not among the hosts that may be asked.")

    def is_own(self, host: str, port: int) -> bool:
        return any(_matches(rule, host, port) for rule in self.own_hosts if "*" not in rule)

    def check_address(self, host: str, port: int, raw: str) -> None:
        """Raises ForbiddenHost."""
        address = _unwrapped(ipaddress.ip_address(raw.partition("%")[0]))
        if address in _METADATA or address.is_multicast or address.is_unspecified or address.is_link_local:
            raise ForbiddenHost(f"{host} leads to {address}, which is never asked.")
        if not address.is_global and not self.is_own(host, port):
            raise ForbiddenHost(f"{host} leads to {address}, which is not a public address.")


def _matches(rule: str, host: str, port: int) -> bool:
    name, ports = _split_port(rule.lower())
    if port not in ports:
        return False
    if name.startswith("*."):
        return host.endswith(name[1:])
    return name in ("*", host)


def _split_port(rule: str) -> tuple[str, frozenset[int]]:
    """`[::1]:8080` as well as `host:8080`."""
    name, colon, port = rule.rpartition(":")
    if colon and port.isdigit():
        return name.strip("[]"), frozenset({int(port)})
    return rule.strip("[]"), USUAL_PORTS


def _unwrapped(address: Address) -> Address:
    """The IPv4 address inside a mapped, translated or tunnelled IPv6 one: that is where it leads."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and any(address in network for network in _EMBEDDING) and int(address) > 1:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


class BoundedStream(httpx2.AsyncByteStream):
    """Ends with a ReadError where more comes than was agreed."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("The answer is too long.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def resolve_host(host: str, port: int) -> list[str]:
    """As the system does. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Raises ForbiddenHost, also for a name of whose addresses one is forbidden.

    With `max_bytes` an answer is refused that is longer, or packed so that its length says nothing.
    `keeps_connections` is for a client that asks one origin only: two names at one address must not share one.
    """

    def __init__(
        self,
        rules: HostRules,
        resolve: Resolve = resolve_host,
        *,
        max_bytes: int | None = None,
        keeps_connections: bool = False,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._max_bytes = max_bytes
        limits = httpx2.Limits(max_keepalive_connections=None if keeps_connections else 0)
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, port = host_and_port(request.url)
        self._rules.check_name(host, port)
        address = await self._pinned_address(host, port)
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # with the Host it was made for
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        response = await self._inner.handle_async_request(pinned)
        if self._max_bytes is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = BoundedStream(response.stream, self._max_bytes)
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                raise httpx2.ReadError("The answer is packed, which was not asked for.")
        return response

    async def _pinned_address(self, host: str, port: int) -> str:
        try:
            addresses = await self._resolve(host, port)
        except OSError:
            raise httpx2.ConnectError(f"{host} cannot be resolved.") from None
        for address in addresses:
            self._rules.check_address(host, port, address)
        if not addresses:
            raise httpx2.ConnectError(f"{host} has no address.")
        return addresses[0]

    async def aclose(self) -> None:
        await self._inner.aclose()


def host_and_port(url: httpx2.URL) -> tuple[str, int]:
    """Raises ForbiddenHost for what is no plain http or https address."""
    if url.scheme not in ("http", "https") or not url.raw_host or url.userinfo:
        raise ForbiddenHost("Only http:// and https:// addresses without a user name are asked.")
    return url.raw_host.decode("ascii").lower().rstrip(".").strip("[]"), url.port or (
        443 if url.scheme == "https" else 80
    )
