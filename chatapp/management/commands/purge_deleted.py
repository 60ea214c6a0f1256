"""`manage.py purge_deleted`: what was deleted leaves the files of the database, however large its tables are."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatapp.forgetting.actions.purging import mark_purge
from chatapp.forgetting.purging import purge_deleted
from chatapp.forgetting.selectors.removals import newest_purge


class Command(BaseCommand):
    help = (
        "Writes every table anew (PostgreSQL: VACUUM FULL) or the journal back (SQLite), so that the database's files"
        " hold nothing that was deleted. Each table is locked while it is written: best when nobody is there."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        mark_purge()
        newest = newest_purge()
        assert newest is not None
        if not purge_deleted(newest, rewritten_bytes=None):
            raise CommandError("Something is in use by a transaction. Try again in a moment.")
        self.stdout.write("The files of the database hold nothing that was deleted.")
