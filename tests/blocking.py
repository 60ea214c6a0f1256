"""What waits for what in PostgreSQL: for tests of two who write at once."""

from __future__ import annotations

from django.db import connection


def somebody_waits() -> bool:
    """For what the transaction of this thread holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])
