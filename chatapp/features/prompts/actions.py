"""Creates, changes and deletes a user's prompts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.features.prompts.models import Prompt
from chatapp.features.prompts.selectors import own_prompts
from chatapp.operations.database.access import find_row, save_unique
from chatapp.operations.errors import Conflict

MAX_PROMPTS = 500


@transaction.atomic
def create_prompt(*, user: User, **columns: str) -> Prompt:
    """Store a prompt. Raise Conflict if the user has a prompt with this name, or too many."""
    # Lock the user, or two concurrent requests would not count each other.
    User.objects.select_for_update().get(pk=user.pk)
    if own_prompts(user).count() >= MAX_PROMPTS:
        raise Conflict(f"There may be {MAX_PROMPTS} prompts at most.")
    row = _save(Prompt(owner=user, **columns))
    record_created_id(row.pk)
    return row


@transaction.atomic
def keep_prompt(*, user: User, created_at: datetime, **columns: str) -> None:
    """Store an exported prompt with its creation time. Raise Conflict as `create_prompt` does."""
    row = create_prompt(user=user, **columns)
    # The insert always sets `created_at` to the present.
    Prompt.objects.filter(pk=row.pk).update(created_at=created_at)


@transaction.atomic
def update_prompt(*, user: User, prompt_id: str, **columns: str) -> Prompt:
    """Change a prompt of the user. Raise NotFound, also for an operators' prompt, and Conflict if the user has another
    prompt with this name."""
    row = find_row(own_prompts(user), prompt_id)
    for name, value in columns.items():
        setattr(row, name, value)
    return _save(row, columns)


def _save(row: Prompt, columns: Iterable[str] | None = None) -> Prompt:
    return save_unique(row, columns, f"You have a prompt with the name {row.name} already.")


@transaction.atomic
def delete_prompt(*, user: User, prompt_id: str) -> None:
    """Delete a prompt of the user. Raise NotFound, also for an operators' prompt."""
    find_row(own_prompts(user), prompt_id).delete()


def delete_prompts(user: User) -> None:
    """Delete all prompts of the user."""
    own_prompts(user).delete()
