"""`manage.py purge_deleted`: what was deleted leaves the files of the database, however large its tables are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from chatapp.operations.journal import truncate_journal

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

# While VACUUM waits for a table, all who come later wait behind it, readers included.
LOCK_TIMEOUT_MS = 2_000
TRANSACTIONS_END_WITHIN_S = 10.0
"""Those of answers take milliseconds, those of autovacuum, which nobody begins, mostly less than a second."""
LOOK_EVERY_S = 0.1
IN_USE = "Something is in use by a transaction, here or on a replica. Try again in a moment."


class Command(BaseCommand):
    help = (
        "Writes every table anew (PostgreSQL: VACUUM FULL; SQLite: VACUUM), so that the database's files hold nothing"
        " that was deleted. Each table is locked while it is written: best when nobody is there."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        skipped: list[Diagnostic] = []
        try:
            with connection.cursor() as cursor:
                if connection.vendor == "sqlite":
                    cursor.execute("VACUUM")
                else:
                    _wait_for_transactions(cursor)
                    # Of a table that it may not write, VACUUM tells in a warning, and ends well.
                    connection.connection.add_notice_handler(skipped.append)
                    # One by one: VACUUM runs in no transaction, and locks a table only while it writes it.
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
                f"Not every table was written ({skipped[0].message_primary}): run this as the owner of the tables."
            )
        # The journal still holds the pages as they were before.
        if not truncate_journal():
            raise CommandError(IN_USE)
        self.stdout.write("The files of the database hold nothing that was deleted.")


def _wait_for_transactions(cursor: Any) -> None:
    """Wait until no transaction is open: VACUUM keeps the rows that one may still read. Raise CommandError where one
    stays."""
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
        # Of a replica that reads, with `hot_standby_feedback`.
        " OR EXISTS (SELECT 1 FROM pg_replication_slots WHERE xmin IS NOT NULL)"
    )
    return bool(cursor.fetchone()[0])
