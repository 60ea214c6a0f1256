"""`manage.py import_conversations EMAIL FILE`: imports conversations from other programs and from our own exports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.accounts.selectors import find_user
from chatapp.features.importing.importer import Report, import_file
from chatapp.features.importing.stream import Progress
from chatapp.features.importing.values import Unreadable

BAR_CHARS = 30


class Command(BaseCommand):
    help = (
        "Imports the conversations of an export of ChatGPT, Claude, Open WebUI, LibreChat or Palimpsest, as JSON or"
        " zip. Conversations that were imported before are skipped, so an interrupted import can be run again. No model"
        " is called."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, email: str, file: Path, **options: Any) -> None:
        user = find_user(email)
        if user is None:
            raise CommandError(f"There is no user {email}; `manage.py create_user {email}` makes one.")
        report = Report()
        try:
            import_file(user=user, path=file, report=report, tell=self._show)
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror or error}.") from None
        except Unreadable as error:
            raise CommandError(f"{file}: {error}") from None
        finally:
            self._end_bar()
        self._tell(report)

    def _show(self, report: Report, progress: Progress) -> bool:
        """Draw the bar if standard error is a terminal. Return True to continue."""
        if sys.stderr.isatty():
            share = progress.read / progress.total if progress.total else 1.0
            bar = ("█" * round(share * BAR_CHARS)).ljust(BAR_CHARS, "·")
            self.stderr.write(f"\r{bar} {share:4.0%}  {report.conversations:,} imported", ending="")
            self.stderr.flush()
        return True

    def _end_bar(self) -> None:
        if sys.stderr.isatty():
            # Django adds the line ending.
            self.stderr.write("")

    def _tell(self, report: Report) -> None:
        self.stdout.write(
            f"Imported {report.conversations:,} conversations with {report.messages:,} messages"
            f"{f' of {report.source}' if report.source else ''}."
        )
        if report.known:
            self.stdout.write(f"{report.known:,} were here already.")
        for what, count in sorted(report.left_out.items()):
            self.stdout.write(f"Left out: {what} ({count:,}).")
        if report.problem_count:
            self.stdout.write(f"{report.problem_count:,} could not be read:")
        for problem in report.problems:
            title = f" “{problem['title']}”" if problem["title"] else ""
            self.stdout.write(f"  number {problem['index'] + 1}{title}: {problem['reason']}")
        if report.problem_count > len(report.problems):
            self.stdout.write(f"  and {report.problem_count - len(report.problems):,} more.")
