"""`manage.py create_user`: creates an account from the shell."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.accounts.actions import create_user
from chatapp.operations.errors import ServiceError


class Command(BaseCommand):
    help = "Creates a user. The password is asked for, or read from standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--admin", action="store_true", help="an operator, who may open the admin panel")
        parser.add_argument("--name", default="")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(
        self, *args: Any, email: str, admin: bool, name: str, password_stdin: bool, **options: Any
    ) -> None:
        # Strip only the line ending, because blanks may belong to the password.
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else ask_password()
        try:
            user = create_user(email=email, password=password, name=name, is_admin=admin)
        except ServiceError as error:
            raise CommandError(error.message) from None
        self.stdout.write(f"Created {user.email}{', an operator' if admin else ''}.")


def ask_password() -> str:
    password = getpass("Password: ")
    if getpass("Again: ") != password:
        raise CommandError("The two passwords differ; nothing was created.")
    return password
