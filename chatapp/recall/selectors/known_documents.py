"""Finds documents that a context already shows or must not show. Recall treats them as if they did not exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from chatapp.operations.database.statements import execute, placeholders

_OF_SOURCES = "SELECT owner_id, ordinal FROM chatapp_searchdocument WHERE source_id IN {sources}"
_OF_ENTRIES = """
SELECT document.owner_id, document.ordinal FROM chatapp_memoryentry entry
JOIN chatapp_searchdocument document ON document.source_id = entry.id
WHERE entry.conversation_id = %s
"""
_OF_BRANCHES = """
SELECT document.owner_id, document.ordinal FROM chatapp_branch branch
JOIN chatapp_message message ON message.branch_id = branch.id
JOIN chatapp_searchdocument document ON document.source_id = message.id
WHERE branch.conversation_id = %s AND branch.id NOT IN {visible}
"""
_BEHIND = """
SELECT document.owner_id, document.ordinal FROM chatapp_message message
JOIN chatapp_searchdocument document ON document.source_id = message.id
WHERE message.branch_id = %s AND message.position > %s
"""
SOURCES_AT_ONCE = 500


def ordinals_of_messages(owner_id: int, message_ids: Collection[str]) -> set[int]:
    """Return the ordinals of the stored documents of these messages."""
    ids, found = [UUID(key) for key in message_ids], set[int]()
    for first in range(0, len(ids), SOURCES_AT_ONCE):
        some = ids[first : first + SOURCES_AT_ONCE]
        found |= _ordinals(owner_id, _OF_SOURCES.format(sources=placeholders(len(some))), *some)
    return found


def ordinals_kept_out(owner_id: int, conversation_id: UUID, spans: Mapping[UUID, int | None]) -> set[int]:
    """Return the ordinals that a conversation never recalls from itself: its entries, because its summary is in the
    context, and messages that only other branches show. `spans` has the visible branches, each up to a position."""
    visible = list(spans)
    statements = [_OF_ENTRIES, _OF_BRANCHES.format(visible=placeholders(len(visible)))]
    values: list[UUID | int] = [conversation_id, conversation_id, *visible]
    for branch_id, upto in spans.items():
        if upto is not None:
            statements.append(_BEHIND)
            values += [branch_id, upto]
    return _ordinals(owner_id, " UNION ALL ".join(statements), *values)


def _ordinals(owner_id: int, sql: str, *values: UUID | int) -> set[int]:
    # Compare the owner here: in SQL, a query planner might read all documents of the owner first.
    return {ordinal for owner, ordinal in execute(sql, *values).fetchall() if owner == owner_id}
