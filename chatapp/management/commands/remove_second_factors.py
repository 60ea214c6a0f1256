"""`manage.py remove_second_factors`: for users who lost their phone and their recovery codes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatapp.accounts.second_factors import remove_lost_factors
from chatapp.accounts.selectors import find_user


class Command(BaseCommand):
    help = (
        "Removes the second factors and passkeys of a user and ends their sessions: the password alone signs in"
        " again. Make sure first that the request comes from this user."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        user = find_user(email)
        if user is None:
            raise CommandError(f"There is no user {email}.")
        count = remove_lost_factors(user=user)
        self.stdout.write(f"Removed {count} of {user.email}." if count else f"{user.email} has none.")
