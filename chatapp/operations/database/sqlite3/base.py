"""Keeps connections to SQLite for later requests, as a pool does for PostgreSQL.

Each request runs in its own thread, and connections belong to threads. Opening one takes about as long as a small
request, because Django registers its functions and SQLite reads the schema.
"""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from collections import defaultdict, deque
from typing import Any

from django.db.backends.sqlite3 import base

FOLD_CASE = "fold_case"
"""The SQL function to compare texts of all scripts regardless of case and Unicode form."""
MOST_KEPT = 4
"""Each connection has a cache of up to 2 MB. More are open only during more concurrent requests."""


def fold_case(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


_kept: defaultdict[tuple[int, str], deque[sqlite3.Connection]] = defaultdict(deque)
"""By process and file: SQLite forbids a fork to use, or even close, a connection of its parent."""


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        try:
            return self._kept_here().pop()  # the last one used has the warmest cache
        except IndexError:
            connection: sqlite3.Connection = super().get_new_connection(conn_params)
            connection.create_function(FOLD_CASE, 1, fold_case, deterministic=True)
            return connection

    def _close(self) -> None:
        # Within an atomic block, closing the connection rolls back. After an error, the state is unknown.
        is_clean = not (self.in_atomic_block or self.errors_occurred)
        if self.connection is not None and is_clean and not self.connection.in_transaction:
            kept = self._kept_here()
            if len(kept) < MOST_KEPT:
                kept.append(self.connection)
                return
        super()._close()  # type: ignore[misc] # the stubs leave it out

    def _kept_here(self) -> deque[sqlite3.Connection]:
        return _kept[os.getpid(), str(self.settings_dict["NAME"])]


def close_kept() -> None:
    """Close the connections that this process keeps. Call this before the file is replaced."""
    for (process, _), connections in _kept.items():
        while connections and process == os.getpid():
            connections.pop().close()
