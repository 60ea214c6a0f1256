"""Reads the prompts that a user may use, and the user's own."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from chatapp.accounts.archive import ArchiveFile, json_file
from chatapp.accounts.models import User
from chatapp.features.prompts.models import Prompt
from chatapp.features.prompts.schemas import prompt_shape
from chatapp.operations.database.access import find_row


def visible_prompts(user: User) -> QuerySet[Prompt]:
    """Return the user's own and the operators' prompts, by name."""
    return Prompt.objects.filter(Q(owner=user) | Q(owner=None)).order_by("name", "owner", "pk")


def own_prompts(user: User) -> QuerySet[Prompt]:
    return Prompt.objects.filter(owner=user).order_by("name")


def visible_prompt(user: User, prompt_id: str) -> Prompt:
    """Return a prompt of the user or the operators. Raise NotFound."""
    return find_row(visible_prompts(user), prompt_id)


def prompt_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the user's prompts as JSON, for the account export."""
    rows = [prompt_shape(row) for row in own_prompts(user)]
    if rows:
        yield "prompts.json", json_file(rows)
