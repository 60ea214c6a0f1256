"""`manage.py purge_deleted`: removes deleted data from the database's files, however large its tables are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from chatapp.operations.database.journal import truncate_journal

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

# While VACUUM waits for a table, all later queries wait behind it, including reads.
LOCK_TIMEOUT_MS = 2_000
TRANSACTIONS_END_WITHIN_S = 10.0
"""Transactions of answers take milliseconds, those of autovacuum, which starts by itself, mostly less than a second."""
LOOK_EVERY_S = 0.1
IN_USE = "Something is in use by a transaction, here or on a replica. Try again in a moment."


class Command(BaseCommand):
    help = (
        "Rewrites every table (PostgreSQL: VACUUM FULL; SQLite: VACUUM), so that the database's files hold nothing that"
        " was deleted. Each table is locked while it is rewritten: best run when nobody uses the service."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        skipped: list[Diagnostic] = []
        try:
            with connection.cursor() as cursor:
                if connection.vendor == "sqlite":
                    cursor.execute("VACUUM")
                else:
                    _wait_for_transactions(cursor)
                    # VACUUM only warns about a table that it may not rewrite, and does not fail.
                    connection.connection.add_notice_handler(skipped.append)
                    # Outside a transaction, VACUUM locks each table only while it rewrites the table.
                    for table in sorted(connection.introspection.django_table_names(only_existing=True)):
                        cursor.execute(
                            "SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_MS}ms"]
                        )
                        cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(table)}")
                    cursor.execute("RESET lock_timeout")
                    connection.connection.remove_notice_handler(skipped.append)
        except OperationalError as error:
            raise CommandError(f"{IN_USE} ({error})") from None
        if skipped:
            raise CommandError(
                f"Not every table was rewritten ({skipped[0].message_primary}): run this as the owner of the tables."
            )
        # The journal still contains the former pages.
        if not truncate_journal():
            raise CommandError(IN_USE)
        self.stdout.write("The files of the database hold nothing that was deleted.")


def _wait_for_transactions(cursor: Any) -> None:
    """Wait until no transaction is open, because VACUUM keeps rows that one may still read. Raise CommandError if one
    stays open."""
    deadline = time.monotonic() + TRANSACTIONS_END_WITHIN_S
    while _has_open_transactions(cursor):
        if time.monotonic() > deadline:
            raise CommandError(IN_USE)
        time.sleep(LOOK_EVERY_S)


def _has_open_transactions(cursor: Any) -> bool:
    cursor.execute(
        "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE (datname = current_database() OR datname IS NULL)"
        " AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL))"
        " OR EXISTS (SELECT 1 FROM pg_prepared_xacts WHERE database = current_database())"
        # This covers replicas with `hot_standby_feedback` that are read.
        " OR EXISTS (SELECT 1 FROM pg_replication_slots WHERE xmin IS NOT NULL)"
    )
    return bool(cursor.fetchone()[0])
