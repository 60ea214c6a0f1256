"""`manage.py backup FILE`: writes database, files and keys to one private file, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from chatapp.files.bucket_copies import bucket_files
from chatapp.operations.backups.archive import BackupProblem
from chatapp.operations.backups.services import make_backup


class Command(BaseCommand):
    help = (
        "Writes the database, uploads, offloaded results (those in a bucket, too) and the secret key to a new file"
        " (tar.gz) that only this account may read. The service may run meanwhile. Needs no tools of the database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="such as palimpsest-2026-11-22.tar.gz; must not exist")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            made = make_backup(file.absolute(), bucket_files())
        except BackupProblem as problem:
            raise CommandError(str(problem)) from None
        self.stdout.write(
            f"{file}: the database and {made.file_count} file{pluralize(made.file_count)},"
            f" {made.size_bytes:,} bytes."
        )
        if made.has_key:
            self.stdout.write("The secret key is in it: keep it as safe as a password.")
        else:
            self.stdout.write("SECRET_KEY comes from the environment and is not in it: keep that as well.")
        if settings.S3_BUCKET:
            self.stdout.write(f"The offloaded results in the bucket {settings.S3_BUCKET} are in it.")
