"""Brings along tools' results that were too large for a context: each gets a reference of its own here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from chatapp.conversations.actions.imports import ImportedMessage
from chatapp.features.importing.account import Account
from chatapp.features.importing.values import SourceConversation
from chatapp.files.offloads import ConversationOffloads
from chatapp.operations.ids import new_id

References = dict[str, UUID]


def with_references(
    message: ImportedMessage, source: SourceConversation, account: Account | None, references: References
) -> ImportedMessage:
    """Return the message with references that lead to results of its own, noted in `references`; without those whose
    content was not brought along."""
    parts = message.columns.get("parts")
    if not parts or not any("offload_ref" in part for part in parts):
        return message
    stored = [_part(part, source, account, references) if "offload_ref" in part else part for part in parts]
    return message._replace(columns={**message.columns, "parts": stored})


def _part(
    part: Mapping[str, Any], source: SourceConversation, account: Account | None, references: References
) -> dict[str, Any]:
    named = part["offload_ref"]
    rest = {name: value for name, value in part.items() if name != "offload_ref"}
    if account is None or not account.has_result(source.id, named):
        source.left_out["whole results of tools"] += 1
        return rest
    # Several parts may refer to one result.
    return rest | {"offload_ref": str(references.setdefault(named, new_id()))}


def store_results(
    conversation_id: UUID, source: SourceConversation, account: Account, references: References
) -> None:
    """Store the results that the conversation's messages refer to."""
    names = {
        part["offload_ref"]: part["name"]
        for message in source.messages
        for part in message.columns.get("parts", ())
        if "offload_ref" in part
    }
    for named, reference in references.items():
        content = account.result(source.id, named)
        if content is not None:
            ConversationOffloads().store_result(conversation_id, reference, content, names.get(named, ""))
