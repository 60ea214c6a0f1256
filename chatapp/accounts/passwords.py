"""The length limits of passwords."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from chatapp.accounts.models import User
from memory.bounds import MAX_PASSWORD_CHARS

MIN_CHARS = 10


class LengthValidator:
    """Counts without surrounding blanks, and refuses passwords that would take long to hash."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Raise ValidationError."""
        if len(password.strip()) < MIN_CHARS:
            told = gettext("Use at least %(count)s characters, not counting spaces at the ends.")
            raise ValidationError(told % {"count": MIN_CHARS})
        if len(password) > MAX_PASSWORD_CHARS:
            told = gettext("This password is too long: use at most %(count)s characters.")
            raise ValidationError(told % {"count": f"{MAX_PASSWORD_CHARS:,}"})

    def get_help_text(self) -> str:
        told = gettext(
            "Your password must contain at least %(count)s characters, not counting spaces at the ends."
        )
        return told % {"count": MIN_CHARS}
