"""Named texts that the composer inserts into a message."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy

from chatapp.operations.database.ids import new_id
from memory.bounds import MAX_PROMPT_CHARS

MAX_PROMPT_NAME_CHARS = 40
NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]*$"
COMMANDS = frozenset(("compact", "config", "context", "forget", "help", "memory"))
"""Words that the composer reads as its own commands."""


class Prompt(models.Model):
    """`name` is typed after a slash. A prompt without an owner belongs to the operators and is for everybody."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(
        max_length=MAX_PROMPT_NAME_CHARS,
        validators=[RegexValidator(NAME_PATTERN, gettext_lazy("Use small letters, digits, - and _."))],
        help_text="What is typed behind the slash: small letters, digits, - and _.",
    )
    about = models.CharField(max_length=150, blank=True, help_text="One line, shown in the list.")
    text = models.TextField(max_length=MAX_PROMPT_CHARS)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="prompt_name_once"),
            # NULLs are never equal, so operators' prompts need a constraint of their own.
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(owner=None), name="prompt_of_operators_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name if self.owner_id is None else str(self.id)  # a user's prompt name is private
