"""The right to answer a run, and how a process that stores a run claims it in the same transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from agents.events import RunStarted
from chatapp.operations.caching.editions import Edition
from chatapp.runs.models import Run


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run's answer, until it expires or a process with a higher `fence` takes over."""

    run_id: UUID
    answer_id: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run stored as running, with its conversation, question and answer. Other fields as in `SendingState`."""

    run: Run
    forgotten_count: int
    edition: Edition

    @property
    def lease(self) -> Lease:
        return Lease(self.run.pk, self.run.answer_id, self.run.fence)


@dataclass(frozen=True, slots=True)
class Claim:
    """The process that stores a run and answers it.

    `describe` returns (model name, mode), or None for a run to leave queued. `begin` is called with the claimed run
    after the commit, in a database thread.
    """

    holder: str
    describe: Callable[[Run], tuple[str, str] | None]
    begin: Callable[[ClaimedRun], None]

    def take(self, run: Run, now: datetime) -> bool:
        """Claim a run that is not stored yet for this process, and return whether it was claimed."""
        described = self.describe(run)
        if described is None:
            return False
        run.answer.model_name, run.mode = described
        run.status, run.holder, run.fence, run.started_at = Run.Status.RUNNING, self.holder, 1, now
        run.lease_expires_at = now + timedelta(seconds=settings.LEASE_S)
        return True


def started_event(run: Run, now: datetime) -> RunStarted:
    return RunStarted(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk),
        at=now,
        message_id=str(run.answer_id),
        parent=str(run.answer.parent_id) if run.answer.parent_id else None,
        model=run.answer.model_name,
        mode=run.mode,
    )
