"""Reads the folders of a user."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.db.models import QuerySet
from django.db.models.functions import Lower

from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.conversations.folders.schemas import folder_shape
from chatapp.conversations.models import Folder
from chatapp.operations.database.access import find_row


def own_folders(user: User) -> QuerySet[Folder]:
    """Return the user's folders by name."""
    return Folder.objects.filter(user=user).select_related("agent").order_by(Lower("name"), "pk")


def accessible_folder(user: User, folder_id: str) -> Folder:
    """Return a folder of the user. Raise NotFound."""
    return find_row(own_folders(user), folder_id)


def _files(row: Folder) -> list[dict[str, str]]:
    in_order = row.files.order_by("created_at", "pk").values_list("pk", "name")
    return [{"id": str(file_id), "name": name} for file_id, name in in_order]


def folder_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the folders as JSON, with the ids and names of their files, for the archive of the account."""
    rows = [folder_shape(row) | {"files": _files(row)} for row in own_folders(user)]
    if rows:
        yield "folders.json", json.dumps(rows, ensure_ascii=False, indent=2)
