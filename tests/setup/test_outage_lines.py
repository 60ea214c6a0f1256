"""An outage is logged as one line now and then. An error of our own keeps its traceback."""

from __future__ import annotations

import errno
import logging
import sqlite3
import sys

import pytest
from celery.beat import SchedulingError
from django.db import OperationalError
from kombu.exceptions import OperationalError as BrokerError

from chatapp.operations.database.outages import describe_outage, is_disk_full
from chatapp.operations.monitoring.logs import OutageLines


def record_of(error: Exception) -> logging.LogRecord:
    try:
        raise error
    except Exception:
        caught = sys.exc_info()
    return logging.LogRecord("chatapp", logging.ERROR, __file__, 7, "Run %s failed.", ("R",), caught)


def database_error(words: str, code: int) -> OperationalError:
    cause = sqlite3.OperationalError(words)
    cause.sqlite_errorcode = code
    error = OperationalError(words)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [OperationalError("server closed the connection\nunexpectedly"), OSError(errno.ENOSPC, "No space left")],
)
def test_an_outage_is_logged_as_one_line_and_not_repeated(error: Exception) -> None:
    lines, first, second = OutageLines(), record_of(error), record_of(error)
    assert lines.filter(first)
    assert first.exc_info is None
    assert first.getMessage().startswith(f"Run R failed. ({type(error).__name__}: ")
    assert "\n" not in first.getMessage()
    assert not lines.filter(second)


def test_tasks_that_beat_cannot_send_are_logged_as_one_line_without_a_stack() -> None:
    """By default beat logs a stack and four tracebacks, 20 kB, for each task that is due while Redis is down."""
    lines, written = OutageLines(), list[str]()
    for task in ("sweep", "webhooks"):
        try:
            try:
                raise BrokerError("Error 111.") from ConnectionRefusedError(errno.ECONNREFUSED, "Refused")
            except BrokerError:
                raise SchedulingError(f"Couldn't apply scheduled task {task}") from None
        except SchedulingError as error:
            given = (error, ["  File beat.py, line 1"])
            record = logging.LogRecord(
                "celery.beat", logging.ERROR, __file__, 7, "Message Error: %s\n%s", given, sys.exc_info()
            )
        if lines.filter(record):
            written.append(logging.Formatter().format(record))
    [line] = written
    assert line.startswith("Message Error: Couldn't apply scheduled task sweep (SchedulingError: ")
    assert "\n" not in line


def test_an_error_of_our_own_keeps_its_traceback() -> None:
    lines = OutageLines()
    wrong = database_error("no such table: x", sqlite3.SQLITE_ERROR)
    for record in (record_of(KeyError("x")), record_of(KeyError("x")), record_of(wrong)):
        assert lines.filter(record)
        assert record.exc_info is not None


def test_a_full_disk_is_distinguished_from_a_database_that_is_down() -> None:
    assert describe_outage(database_error("disk is full", sqlite3.SQLITE_FULL)).status == 507
    assert describe_outage(OperationalError("connection refused")).status == 503
    assert not is_disk_full(OSError(errno.ENOENT, "No such file"))
