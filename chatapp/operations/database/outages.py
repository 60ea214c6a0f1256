"""Recognises errors from outside: the database is unavailable, a disk is full, or a row was deleted meanwhile."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.core import exceptions
from django.db import DatabaseError

from agents.libraries import Library
from chatapp.operations.database.threads import OUTAGE_ERRORS
from chatapp.operations.errors import DiskFull, ServiceError, Unavailable

if TYPE_CHECKING:
    import redis
else:
    redis = Library("redis")

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
SQLITE_NO_SPACE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})
POSTGRES_NO_SPACE = "53100"
POSTGRES_NO_SUCH_KEY = "23503"
NOT_UPDATED: type[Exception] | tuple[()] = getattr(exceptions, "ObjectNotUpdated", ())
"""Django raises this from 6.0 on, and a plain DatabaseError before."""


def is_disk_full(error: BaseException) -> bool:
    """Return whether a write to the database or a file failed for lack of space."""
    return any(_is_no_space(cause) for cause in _causes(error))


def is_outage(error: BaseException) -> bool:
    """Return whether the error means that a part is unavailable, not that our code is wrong."""
    if isinstance(error, OUTAGE_ERRORS):
        return not any(_is_wrong_statement(cause) for cause in _causes(error))
    return isinstance(error, redis.ConnectionError | ConnectionRefusedError) or is_disk_full(error)


def is_deleted_concurrently(error: BaseException) -> bool:
    """Return whether a row that a write changes or references was deleted since it was read."""
    if isinstance(error, NOT_UPDATED) or (type(error) is DatabaseError and error.__cause__ is None):
        return True  # raised by Django: there was no row to change
    return any(
        getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
        or getattr(cause, "sqlstate", None) == POSTGRES_NO_SUCH_KEY
        for cause in _causes(error)
    )


def describe_outage(error: BaseException) -> ServiceError:
    """Return the error to send to a client after the database failed."""
    return DiskFull() if is_disk_full(error) else Unavailable()


def _is_wrong_statement(error: BaseException) -> bool:
    """Return whether SQLite refused the statement, e.g. for a missing table. It uses the same class as for a lock."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _is_no_space(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_SPACE
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) in SQLITE_NO_SPACE
    return getattr(error, "sqlstate", None) == POSTGRES_NO_SPACE


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and the chain of its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
