"""`manage.py restore FILE`: restores a backup into this deployment, which must be empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from chatapp.accounts.selectors import all_users
from chatapp.files.bucket_copies import bucket_files
from chatapp.long_term.files import rebuild_files
from chatapp.operations.backups.archive import BackupProblem
from chatapp.operations.backups.services import restore_backup


class Command(BaseCommand):
    help = (
        "Restores a file of `manage.py backup` into an empty deployment of the same kind of database, and brings it up"
        " to date. The service must not run."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            manifest = restore_backup(file.absolute(), bucket_files())
        except BackupProblem as problem:
            raise CommandError(str(problem)) from None
        users = all_users()
        # A backup omits the daily files, because they are rendered from rows.
        days = sum(rebuild_files(user.pk) for user in users)
        self.stdout.write(
            f"Restored the backup of {manifest.made_at:%Y-%m-%d %H:%M} UTC: {len(users)}"
            f" account{pluralize(users)}, {days} memory file{pluralize(days)} rewritten. Start the service."
        )
