"""Opens the listening socket before anything else starts, so that a port in use is reported at once."""

from __future__ import annotations

import socket

BACKLOG = 1024
HIGHEST_PORT = 65_535
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotServe(Exception):
    """Why the service cannot start: one sentence for the operator."""


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raise CannotServe."""
    if not 0 <= port <= HIGHEST_PORT:
        raise CannotServe(f"{port} is not a port: set PORT or --port to a number up to {HIGHEST_PORT}.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: it cannot be a name at all, such as a..b
        reason = error.strerror if isinstance(error, OSError) else error
        raise CannotServe(
            f"{host} is not an address of this machine ({reason}): set HOST or --host."
        ) from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A restarted service need not wait until the system forgets the old connections.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotServe(
            f"Port {port} of {host} cannot be used ({error.strerror}): "
            "stop what uses it, or set PORT or --port to another."
        ) from None
    return listener


def browser_address(listener: socket.socket) -> str:
    """Return the address to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
