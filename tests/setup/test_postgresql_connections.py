"""A PostgreSQL server that has stopped responding is distinguished from one that is busy."""

from __future__ import annotations

import psycopg
import pytest

from chatapp.operations.database.postgresql import WatchedConnection
from tests.servers.postgres import Postgres


class Impatient(WatchedConnection):
    silence_s = 0.2


def test_a_long_statement_is_not_interrupted(postgres: Postgres) -> None:
    with Impatient.connect(postgres.url()) as connection:
        assert connection.execute("SELECT 7 FROM pg_sleep(0.7)").fetchone() == (7,)


def test_a_statement_that_waits_for_a_lock_is_not_interrupted(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url()) as holding, Impatient.connect(postgres.url()) as waiting:
        holding.execute("SELECT pg_advisory_xact_lock(12)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            waiting.execute("SET LOCAL lock_timeout = 700; SELECT pg_advisory_xact_lock(12)")


def test_a_frozen_server_fails_the_statement_and_closes_its_connection(postgres: Postgres) -> None:
    connection = Impatient.connect(postgres.url())
    with postgres.frozen(), pytest.raises(psycopg.OperationalError, match="is not responding"):
        connection.execute("SELECT 1")
    assert connection.closed
    with Impatient.connect(postgres.url()) as again:
        assert again.execute("SELECT 1").fetchone() == (1,)
