"""Connections to PostgreSQL that tell a server which has stopped answering from one which works for long."""

from __future__ import annotations

import threading
import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

R = TypeVar("R")

CONNECT_S = 3
AT_ONCE_S = 1.0
"""What a look has found counts for so long, for all who wait in this process."""
PARAMETERS = {
    "connect_timeout": CONNECT_S,
    # A network that drops packets: the kernel gives up the connection.
    "tcp_user_timeout": 8000,
    # The same where nothing is on its way: after 5 s three tries, a second apart.
    "keepalives_idle": 5,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}


class WatchedConnection(psycopg.Connection[Any]):
    """Waits for a result as long as the server takes new connections, and fails where it does not.

    A frozen server keeps its sockets open, so that without this a statement waits for ever. A limit on the statement
    itself would end migrations and backups, which take minutes.
    """

    silence_s = 4.0
    """A statement without an answer for so long makes us look whether the server answers anybody."""

    def preparing_cursor(self) -> psycopg.Cursor[Any]:
        """Return a cursor that sends values apart from the text, and prepares what it is given repeatedly."""
        return psycopg.Cursor(self)

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: PQGen[R]) -> PQGen[R]:
        """Yield the waits of `gen`. Close the connection and raise OperationalError where the server is silent to
        everybody."""
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
                        # Closed, so that the pool does not give it to anybody again.
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server does not answer")
                    began = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result


class _Look:
    """Find out whether the server takes a new connection: one thread tries, the others wait for its result."""

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
    """Return whether the server answers a new connection. A refusal is an answer, too: such a server ends its
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
"""A statement that was run so often on a connection is prepared there."""
POOL: dict[str, Any] = {
    "connection_class": WatchedConnection,
    "min_size": 1,
    # More than the database threads (`operations.database`), so that page requests find one free.
    "max_size": 20,
    # A request that needs the database while it is away fails within 10 s.
    "timeout": 8,
    # Connecting again begins with the next request, not after the pauses of a long outage.
    "reconnect_timeout": 5,
}
