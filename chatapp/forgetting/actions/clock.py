"""The first statement of every transaction that forgets."""

from __future__ import annotations

from uuid import UUID

from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.operations import jobs
from chatapp.operations.fences import raise_fences


def begin_forgetting(user_id: UUID) -> None:
    """Raise the fences of the user and of the shared memories they add to; what is deleted leaves the journal, too."""
    raise_fences([user_id, *scopes_of(user_id)])
    jobs.wake_worker("chatapp.operations.tasks.truncate_journal_of_deleted", "")
