"""`manage.py create_token`: creates an API token and prints it once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.accounts.actions import create_token
from chatapp.accounts.schemas import MAX_TOKEN_LIFE
from chatapp.accounts.selectors import SCOPES, find_user
from chatapp.operations import clock
from chatapp.operations.errors import ServiceError


class Command(BaseCommand):
    help = "Creates an API token and prints it. It is stored as a hash and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="command line", help="a name by which its owner recognises it")
        parser.add_argument(
            "--scopes", default="chat,read,memory", help=f"some of {','.join(SCOPES)} (default: %(default)s)"
        )

        parser.add_argument("--days", type=int, help="after how many days it expires (default: never)")

    def handle(
        self, *args: Any, email: str, name: str, scopes: str, days: int | None, **options: Any
    ) -> None:
        user = find_user(email)
        if user is None:
            raise CommandError(f"There is no user {email}; `manage.py create_user {email}` makes one.")
        if days is not None and not 1 <= days <= MAX_TOKEN_LIFE.days:
            raise CommandError(f"--days is a number from 1 to {MAX_TOKEN_LIFE.days}.")
        expires_at = clock.now() + timedelta(days=days) if days else None
        try:
            _, secret = create_token(
                user=user, name=name, scopes=scopes.replace(",", " ").split(), expires_at=expires_at
            )
        except ServiceError as error:
            raise CommandError(error.message) from None
        self.stdout.write(secret)
