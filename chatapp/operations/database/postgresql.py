"""Connections to PostgreSQL that distinguish a server that has stopped responding from a slow statement."""

from __future__ import annotations

import threading
import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

R = TypeVar("R")

CONNECT_S = 3
AT_ONCE_S = 1.0
"""The result of a probe is valid this long, for all threads of this process that wait."""
PARAMETERS = {
    "connect_timeout": CONNECT_S,
    # In milliseconds. If the network drops packets, the kernel closes the connection.
    "tcp_user_timeout": 8000,
    # The same for an idle connection: after 5 s, send three probes, one second apart.
    "keepalives_idle": 5,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}


class WatchedConnection(psycopg.Connection[Any]):
    """Waits for a result as long as the server accepts new connections, and fails otherwise.

    A frozen server keeps its sockets open, so a statement would wait forever. A time limit on statements would end
    migrations and backups, which take minutes.
    """

    silence_s = 4.0
    """After this long without a response, probe whether the server accepts new connections."""

    def preparing_cursor(self) -> psycopg.Cursor[Any]:
        """Return a cursor that sends values separately from the SQL and prepares repeated statements."""
        return psycopg.Cursor(self)

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: PQGen[R]) -> PQGen[R]:
        """Yield the waits of `gen`. If the server does not respond to anybody, close the connection and raise
        OperationalError."""
        try:
            state = next(gen)
            began = time.monotonic()
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    began = now
                elif now - began >= self.silence_s:
                    if not _look.finds_server(self):
                        # Close it, so that the pool does not hand it out again.
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server is not responding")
                    began = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result


class _Look:
    """A probe of whether the server accepts new connections. One thread tries, the others wait for its result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._found = True

    def finds_server(self, connection: WatchedConnection) -> bool:
        with self._lock:
            if time.monotonic() - self._looked_at >= AT_ONCE_S:
                self._found = _takes_connections(connection)
                self._looked_at = time.monotonic()
            return self._found


_look = _Look()


def _takes_connections(connection: WatchedConnection) -> bool:
    """Return whether the server responds to a new connection. A refusal is a response, too: such a server closes its
    connections itself."""
    options: dict[str, Any] = {
        option.keyword.decode(): option.val.decode()
        for option in connection.pgconn.info
        if option.val is not None
    }
    try:
        psycopg.connect(**{**options, "connect_timeout": CONNECT_S}).close()
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.OperationalError:
        return True
    return True


PREPARED_AT = 2
"""Prepare a statement after it was run this often on a connection."""
POOL: dict[str, Any] = {
    "connection_class": WatchedConnection,
    "min_size": 1,
    # More than the database threads (`threads.py`), so that page requests find a free one.
    "max_size": 20,
    # A request that needs the database during an outage fails within 10 s.
    "timeout": 8,
    # Give up early, so that the next request reconnects. Retries would make ever longer pauses in a long outage.
    "reconnect_timeout": 5,
}
