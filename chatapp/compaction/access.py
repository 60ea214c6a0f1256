"""The one way to a row: by its id and the user who asks. Not yours is not found."""

from __future__ import annotations

from uuid import UUID

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.operations.access import _only, parse_id


def accessible_compaction(user: User, conversation_id: str | UUID, compaction_id: str | UUID) -> Compaction:
    rows = Compaction.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return _only(rows, compaction_id)
