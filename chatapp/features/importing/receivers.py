"""Who has everything forgotten imports nothing any more: what goes on ends, and no file is left to try again."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.features.importing import job
from chatapp.features.importing.job_actions import delete_imports
from chatapp.forgetting.actions.whole import everything_forgotten


def end_imports(sender: Any, *, user: User, **_: Any) -> None:
    ids = delete_imports(user)
    # A process that dies in between leaves them to the sweep.
    transaction.on_commit(lambda: job.delete_files(ids))


everything_forgotten.connect(end_imports, dispatch_uid="importing.end_imports")
