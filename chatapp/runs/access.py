"""The one way to a row: by its id and the user who asks. Not yours is not found."""

from __future__ import annotations

from uuid import UUID

from chatapp.accounts.models import User
from chatapp.operations.access import _only
from chatapp.runs.models import Run


def accessible_run(user: User, run_id: str | UUID) -> Run:
    return _only(Run.objects.filter(conversation__user=user), run_id)
