"""Creates, changes and deletes folders."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, Unpack

from django.db import transaction

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.folders.selectors import accessible_folder
from chatapp.conversations.models import Folder
from chatapp.operations.database.access import find_row, save_unique
from chatapp.operations.errors import Conflict

MAX_FOLDERS = 200


class FolderColumns(TypedDict, total=False):
    """Validated columns that a user sets; missing ones keep their value or default."""

    name: str
    instructions: str
    agent: Agent | None


@transaction.atomic
def create_folder(*, user: User, now: datetime, **columns: Unpack[FolderColumns]) -> Folder:
    """Create a folder. Raise Conflict if the user has a folder of that name, or too many folders."""
    # Lock the user, or two concurrent requests would not count each other.
    User.objects.select_for_update().get(pk=user.pk)
    if Folder.objects.filter(user=user).count() >= MAX_FOLDERS:
        raise Conflict(f"There may be {MAX_FOLDERS} folders at most.")
    row = _save(Folder(user=user, created_at=now, **columns))
    record_created_id(row.pk)
    return row


def update_folder(*, user: User, folder_id: str, **columns: Unpack[FolderColumns]) -> Folder:
    """Change a folder. Raise NotFound, and Conflict if the user has another folder of that name."""
    row = accessible_folder(user, folder_id)
    for name, value in columns.items():
        setattr(row, name, value)
    return _save(row, columns)


def _save(row: Folder, columns: Iterable[str] | None = None) -> Folder:
    return save_unique(row, columns, f"You have a folder with the name {row.name} already.")


@transaction.atomic
def delete_folder(*, user: User, folder_id: str) -> None:
    """Delete a folder; its conversations stay, in no folder. Raise NotFound."""
    find_row(Folder.objects.select_for_update().filter(user=user), folder_id).delete()
