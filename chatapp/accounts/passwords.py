"""How long a password must and may be."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from chatapp.accounts.models import User
from memory.bounds import MAX_PASSWORD_CHARS

MIN_CHARS = 10


class LengthValidator:
    """Counts without the blanks around it, and refuses what would take long to hash."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError."""
        if len(password.strip()) < MIN_CHARS:
            raise ValidationError(
                f"This password is too short: use {MIN_CHARS} characters, without blanks around."
            )
        if len(password) > MAX_PASSWORD_CHARS:
            raise ValidationError(
                f"This password is too long: use at most {MAX_PASSWORD_CHARS:,} characters."
            )

    def get_help_text(self) -> str:
        return f"Your password must contain at least {MIN_CHARS} characters, not counting blanks at the ends."
