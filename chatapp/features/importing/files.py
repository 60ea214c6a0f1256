"""Finds the uploads that imported messages and folders reference: the user's own by id, else those in the archive. Also
stores the tool results that messages reference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations.actions.imports import ImportedMessage
from chatapp.features.importing.account import Account
from chatapp.features.importing.selectors import known_bytes, unused_file
from chatapp.features.importing.tree import BranchedMessages
from chatapp.features.importing.values import ReadContext, SourceConversation
from chatapp.files.attachments import copy_attachment, store_upload
from chatapp.files.models import Attachment, Offload
from chatapp.files.offloads import write_result
from chatapp.files.selectors import attachments_by_id
from chatapp.operations.errors import InvalidInput, NotFound, TooLarge


def files_of(user: User, grown: BranchedMessages, account: Account | None) -> Mapping[str, Attachment]:
    """Return the files that the messages show, by their ids in the export."""
    named = {
        part["file_id"]: part["name"]
        for message in grown.messages
        for part in message.columns.get("parts", ())
        if "file_id" in part
    }
    if not named:
        return {}
    return uploads_of(user, named, account)


def uploads_of(user: User, named: Mapping[str, str], account: Account | None) -> Mapping[str, Attachment]:
    """Return the user's uploads by id in the export, after storing those that only the archive has."""
    found = attachments_by_id(user.pk, named)
    if account is None:
        return found
    for file_id, name in named.items():
        # An upload that several conversations show is stored once.
        if file_id not in found and file_id not in account.files:
            content = account.upload(file_id)
            # Two uploads with the same bytes and name stay two.
            taken = [row.pk for row in account.files.values()]
            stored = _store(user, name, content, taken) if content is not None else None
            if stored is not None:
                account.files[file_id] = stored
    return found | {file_id: row for file_id, row in account.files.items() if file_id in named}


def _store(user: User, name: str, content: bytes, taken: Sequence[UUID]) -> Attachment | None:
    """Return the user's upload of these bytes; None if they are not an accepted file.

    Bytes that this service has stored before are copied unchanged: encoding an image again would lose quality.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    if (own := unused_file(user, sha256, name, taken)) is not None:
        return own
    try:
        if (known := known_bytes(sha256)) is not None:
            with suppress(NotFound):  # it was deleted meanwhile
                return copy_attachment(known, user=user, name=name)
        return store_upload(user=user, name=name, content=content)
    except (InvalidInput, TooLarge):
        return None


def with_files(
    message: ImportedMessage, files: Mapping[str, Attachment], reading: ReadContext
) -> ImportedMessage:
    """Return the message with its stored file parts, and a line of text in place of each missing file."""
    return _with_parts(message, "file_id", lambda part: _file_part(part, files, reading))


def _with_parts(
    message: ImportedMessage, key: str, convert: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> ImportedMessage:
    """Return the message with those parts converted that have the key."""
    parts = message.columns.get("parts")
    if not parts or not any(key in part for part in parts):
        return message
    stored = [convert(part) if key in part else part for part in parts]
    return message._replace(columns={**message.columns, "parts": stored})


def _file_part(
    part: Mapping[str, Any], files: Mapping[str, Attachment], reading: ReadContext
) -> dict[str, Any]:
    row = files.get(part["file_id"])
    if row is None:
        reading.left_out["images and other files"] += 1
        return {"type": "text", "text": f"[A file that was not imported: {part['name']}]"}
    own = {"file_id": str(row.pk), "mime_type": row.mime_type}
    if row.is_image:
        return {"type": "image", **own, "width": row.width, "height": row.height}
    return {"type": "file", **own, "name": row.name, "size_bytes": row.size_bytes}


@dataclass(slots=True)
class Results:
    """The tool results that were too large for a context and that the messages of a conversation reference. Their files
    are written first, under new references; `rows` are stored with the conversation. A result without content has no
    row."""

    conversation_id: UUID
    source: SourceConversation
    account: Account | None
    _written: dict[str, Offload | None] = field(default_factory=dict)

    @property
    def rows(self) -> list[Offload]:
        return [row for row in self._written.values() if row is not None]

    def refer_to(self, message: ImportedMessage) -> ImportedMessage:
        """Return the message with references to its own results. References to missing content are removed."""
        return _with_parts(message, "offload_ref", self._part)

    def _part(self, part: Mapping[str, Any]) -> dict[str, Any]:
        named = part["offload_ref"]
        # Several parts may reference one result.
        if named not in self._written:
            self._written[named] = self._write(named, part["name"])
        row = self._written[named]
        if row is None:
            self.source.left_out["whole results of tools"] += 1
            return {name: value for name, value in part.items() if name != "offload_ref"}
        return {**part, "offload_ref": str(row.pk)}

    def _write(self, named: str, tool_name: str) -> Offload | None:
        content = self.account.result(self.source.id, named) if self.account is not None else None
        return write_result(self.conversation_id, content, tool_name) if content is not None else None
