"""Imports tool results that were too large for a context, under new references. Files are written before the
conversation is stored, and their rows with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chatapp.conversations.actions.imports import ImportedMessage
from chatapp.features.importing.account import Account
from chatapp.features.importing.values import SourceConversation
from chatapp.files.models import Offload
from chatapp.files.offloads import write_result


@dataclass(slots=True)
class Results:
    """The tool results that the messages of a conversation reference. `rows` are stored with it. A result without
    content has no row."""

    conversation_id: UUID
    source: SourceConversation
    account: Account | None
    _written: dict[str, Offload | None] = field(default_factory=dict)

    @property
    def rows(self) -> list[Offload]:
        return [row for row in self._written.values() if row is not None]

    def refer_to(self, message: ImportedMessage) -> ImportedMessage:
        """Return the message with references to its own results. References to missing content are removed."""
        parts = message.columns.get("parts")
        if not parts or not any("offload_ref" in part for part in parts):
            return message
        stored = [self._part(part) if "offload_ref" in part else part for part in parts]
        return message._replace(columns={**message.columns, "parts": stored})

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
