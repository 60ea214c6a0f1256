"""Guard requests to addresses that users, models or servers chose.

The name of a host and every address it resolves to are checked, and the connection goes to a checked address. Redirects
are checked in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache

import httpx2

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

RESOLVE_TIMEOUT_S = 5.0
USUAL_PORTS = frozenset({80, 443})
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""NAT64, IPv4-compatible and SIIT addresses: the last four bytes are an IPv4 address."""
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})
"""The second half of an ISATAP address begins with one of these and ends with an IPv4 address."""
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    )
)
"""Cloud metadata services, which return the machine's credentials: forbidden even for an operator's own host."""
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "::/127", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20",
            "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
        ),
    )
)  # fmt: skip
"""IANA's special-purpose registries. Listed here because `is_global` differs between Python versions."""


class ForbiddenHost(Exception):
    """A host that must not be contacted; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """Which hosts may be contacted: `docs.python.org`, `*.python.org` for its subdomains, `*` for all.

    A rule allows ports 80 and 443, or the port it names (`host:8080`). `hosts` are allowed at public addresses only;
    `own_hosts`, which must not be patterns, at private ones, too.
    """

    hosts: tuple[str, ...] = ()
    own_hosts: tuple[str, ...] = ()

    @classmethod
    def of_address(cls, url: httpx2.URL, *, is_own: bool) -> HostRules:
        """Return rules that allow the host and port of one URL. Raise ForbiddenHost if the URL has none."""
        host, port = host_and_port(url)
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return cls(hosts=(shown,), own_hosts=(shown,) if is_own else ())

    def check_name(self, host: str, port: int) -> None:
        """Raise ForbiddenHost if no rule allows the host, or if it is a forbidden IP address."""
        if not self.is_own(host, port) and not any(_matches(rule, host, port) for rule in self.hosts):
            raise ForbiddenHost(f"{host}:{port} is not an allowed host.")
        with contextlib.suppress(ValueError):  # a name; its addresses are checked on connecting
            self.check_address(host, port, host)

    def is_own(self, host: str, port: int) -> bool:
        """Return whether the operator listed this host as one that may have a private address."""
        return any(_matches(rule, host, port) for rule in self.own_hosts if "*" not in rule)

    def check_address(self, host: str, port: int, raw: str) -> None:
        """Raise ForbiddenHost if this host must not have the address."""
        # Drop the zone: an address with a zone never equals a listed one.
        address = _unwrapped(ipaddress.ip_address(raw.partition("%")[0]))
        if address in _METADATA or address.is_multicast or address.is_unspecified or address.is_link_local:
            raise ForbiddenHost(f"{host} resolves to {address}, which is always forbidden.")
        is_public = address.is_global and not any(address in network for network in _NOT_PUBLIC)
        if not is_public and not self.is_own(host, port):
            raise ForbiddenHost(f"{host} resolves to {address}, which is not a public address.")


def _matches(rule: str, host: str, port: int) -> bool:
    name, ports = _split_port(rule.lower())
    if port not in ports:
        return False
    if name.startswith("*."):
        # Keep the dot, or `*.python.org` would match `evilpython.org`.
        return host.endswith(name[1:])
    return name in ("*", host)


def _split_port(rule: str) -> tuple[str, frozenset[int]]:
    """Return (name, ports) of a rule such as `host:8080` or `[::1]:8080`."""
    name, colon, port = rule.rpartition(":")
    if colon and port.isdigit():
        return name.strip("[]"), frozenset({int(port)})
    return rule.strip("[]"), USUAL_PORTS


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address inside a mapped, translated or tunnelled IPv6 one, because packets end up there."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    # `::` and `::1` embed nothing.
    if inner is None and any(address in network for network in _EMBEDDING) and int(address) > 1:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is None and (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


class BoundedStream(httpx2.AsyncByteStream):
    """A response body that raises ReadError once it is longer than `max_bytes`."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("The response is too long.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses that a host name resolves to. Raise OSError, also for an invalid name."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is empty or longer than 63 characters
        raise socket.gaierror(socket.EAI_NONAME, "This is not a valid host name.") from None
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all clients: the system's CAs, or those of SSL_CERT_FILE. Loading them takes 25 ms."""
    return httpx2.create_ssl_context()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that raises ForbiddenHost if the host, or any address it resolves to, is forbidden.

    With `max_bytes`, longer or compressed responses are refused. `keeps_connections` is for clients of a single origin:
    two host names at one address must not share a connection.
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
        # A proxy from the environment would resolve the name itself, after the check.
        self._inner = httpx2.AsyncHTTPTransport(verify=tls_context(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, port = host_and_port(request.url)
        self._rules.check_name(host, port)
        address = await self._pinned_address(host, port)
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # the Host header keeps the name
            stream=request.stream,
            # Verify the certificate for the name, not for the address.
            extensions={**request.extensions, "sni_hostname": host},
        )
        response = await self._inner.handle_async_request(pinned)
        if self._max_bytes is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = BoundedStream(response.stream, self._max_bytes)
            # The limit counts the bytes received, and a small compressed body can unpack to a huge one.
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                raise httpx2.ReadError("The response is compressed, although compression was not requested.")
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


async def check_own_address(url: httpx2.URL) -> None:
    """Raise ForbiddenHost for an address that not even an operator's own server may have."""
    await check_known_addresses(HostRules.of_address(url, is_own=True), url)


async def check_known_addresses(rules: HostRules, url: httpx2.URL, resolve: Resolve = resolve_host) -> None:
    """Raise ForbiddenHost if the host resolves to an address that the rules forbid.

    A name that cannot be resolved in time passes: a proxy may know it, and it is checked again on connecting.
    """
    host, port = host_and_port(url)
    with contextlib.suppress(OSError):  # includes TimeoutError
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            for address in await resolve(host, port):
                rules.check_address(host, port, address)


def host_and_port(url: httpx2.URL) -> tuple[str, int]:
    """Return (host, port). Raise ForbiddenHost unless the URL is an http or https one without a user name."""
    if url.scheme not in ("http", "https") or not url.raw_host or url.userinfo:
        raise ForbiddenHost("Only http:// and https:// URLs without a user name are allowed.")
    # A trailing dot names the same host.
    return url.raw_host.decode("ascii").lower().rstrip(".").strip("[]"), url.port or (
        443 if url.scheme == "https" else 80
    )
