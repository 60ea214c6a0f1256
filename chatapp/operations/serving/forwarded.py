"""An ASGI wrapper that reads client headers of trusted proxies, and removes those of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]
Network = IPv4Network | IPv6Network

OWN_NAMES = {b"via", b"x-real-ip", b"x-client-ip", b"true-client-ip", b"cf-connecting-ip", b"cdn-loop"}
"""Headers that some proxies send instead of `Forwarded`."""
CLAIMS = frozenset({b"forwarded", b"x-scheme", b"daphne-root-path", b"script-name", *OWN_NAMES})
SECURE = {"http": "https", "ws": "wss", "https": "https", "wss": "wss"}


def parse_proxies(proxies: Sequence[str]) -> list[Network]:
    """Return the networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    return [ip_network(proxy, strict=False) for proxy in proxies]


def trust_proxies(application: Application, networks: Sequence[Network]) -> Application:
    """Return the application so that `read_claims` changes its scopes."""

    async def forward(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] in {"http", "websocket"}:
            scope = read_claims(scope, networks)
        await application(scope, receive, send)

    return forward


def read_claims(scope: Scope, networks: Sequence[Network]) -> Scope:
    """Return the scope without these headers, with a trusted proxy's values applied. `is_forwarded`: it had any."""
    claims = {name: value for name, value in scope["headers"] if is_claim(name)}
    # Daphne sets `root_path` from a header that anybody can send.
    scope["root_path"], scope["is_forwarded"] = "", bool(claims)
    scope.setdefault("scheme", "ws" if scope["type"] == "websocket" else "http")
    if not claims:
        return scope
    scope["headers"] = [(name, value) for name, value in scope["headers"] if not is_claim(name)]
    if not scope["client"] or not is_trusted(scope["client"][0], networks):
        return scope
    if address := client_address(claims.get(b"x-forwarded-for", b""), networks):
        scope["client"] = [address, 0]
    if claims.get(b"x-forwarded-proto", b"").strip().lower() == b"https":
        scope["scheme"] = SECURE[scope["scheme"]]
        scope["headers"].append((b"x-forwarded-proto", b"https"))  # what SECURE_PROXY_SSL_HEADER reads
    return scope


def is_claim(name: bytes) -> bool:
    return name in CLAIMS or name.startswith(b"x-forwarded-")


def client_address(chain: bytes, networks: Sequence[Network]) -> str | None:
    """Return the last address that is not a trusted proxy, because the client may have written those before it. Return
    the first address if all are proxies, and None if the last entry is invalid."""
    found = None
    for entry in reversed(chain.decode("latin-1").split(",")):
        if (address := parse_address(entry)) is None:
            return found
        found = address
        if not is_trusted(address, networks):
            break
    return found


def parse_address(entry: str) -> str | None:
    """Return an address of a chain, without the port that some proxies add; None if it is invalid."""
    entry = entry.strip()
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return str(ip_address(entry))
    except ValueError:
        return None


def is_trusted(address: str, networks: Sequence[Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    # A listener for both families reports IPv4 clients as ::ffff:10.0.0.1.
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)
