"""Every write to the search index."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from chatapp.models import Conversation


def remove_entries(user_id: UUID, entry_ids: Sequence[UUID]) -> None: ...


def remove_conversation(conversation: Conversation) -> None: ...
