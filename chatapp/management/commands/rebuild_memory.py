"""`manage.py rebuild_memory [EMAIL]`: rewrites files and search index from the database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from chatapp.accounts.models import User
from chatapp.accounts.selectors import all_users, find_user
from chatapp.long_term.files import rebuild_files
from chatapp.recall.actions.indexing import delete_shared_indexes, rebuild_index


class Command(BaseCommand):
    help = (
        "Rewrites the daily files, MEMORY.md and the search index from the database, for one user or for all. Nothing"
        " is learned or lost: what users edited is kept. Safe while the service runs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", nargs="?", default="", help="only this user; by default all users")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        if not email:
            # Only for all users, because a shared index is rebuilt from all who contribute to it.
            delete_shared_indexes()
        for user in self._users(email):
            files, texts = rebuild_files(user.pk), rebuild_index(user.pk)
            self.stdout.write(
                f"{user.email}: {files} file{pluralize(files)}, {texts} document{pluralize(texts)} in the index."
            )

    def _users(self, email: str) -> list[User]:
        if not email:
            return all_users()
        user = find_user(email)
        if user is None:
            raise CommandError(f"There is no user {email}.")
        return [user]
