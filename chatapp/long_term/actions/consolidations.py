"""Writes consolidations: queued before the work begins, one at a time per user, done exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from chatapp.long_term.actions.profile import lock_profile, set_text
from chatapp.long_term.models import Consolidation, MemoryEntry, ProfileVersion
from chatapp.long_term.selectors.scopes import scopes_of
from chatapp.operations.database.forgetting_counts import lock_forgetting_counts
from chatapp.operations.errors import LeaseLost
from chatapp.operations.workers import jobs
from chatapp.recall.actions.claims import store_superseded_pairs
from chatapp.recall.selectors.claims import StatementPlace

MAX_ATTEMPTS = 3
_CLAIMS = MAX_ATTEMPTS + 1
"""Claims per start of a consolidation; the last one gives up. The fences of a start follow a multiple of this."""


@dataclass(frozen=True, slots=True)
class ConsolidationLease:
    consolidation_id: UUID
    fence: int

    @property
    def is_last_attempt(self) -> bool:
        # This claim has raised the fence already.
        return self.fence % _CLAIMS == 0


@dataclass(frozen=True, slots=True)
class NewProfile:
    """`text` was made from the profile's `version` and the entries in these revisions. `over` has pairs of places: a
    statement that no longer holds, and the one that supersedes it."""

    text: str
    version: int
    revisions: Mapping[UUID, int]
    over: Sequence[tuple[StatementPlace, StatementPlace]] = ()


def queue_consolidation(*, user_id: UUID, night: date | None = None, now: datetime) -> Consolidation | None:
    """Store a consolidation and wake a worker; None if one is active already, or was stored for this night."""
    # Rely on the constraints, because another process may queue one at the same moment.
    try:
        with transaction.atomic():
            row = Consolidation.objects.create(
                user_id=user_id, night=night, lease_expires_at=now, created_at=now
            )
            jobs.wake_worker("chatapp.long_term.tasks.consolidate", str(row.pk))
            return row
    except IntegrityError:
        return None


def claim_consolidation(*, consolidation_id: UUID, now: datetime) -> ConsolidationLease | None:
    """Claim a consolidation that is pending or whose lease expired; return None for any other."""
    free = Q(status=Consolidation.Status.PENDING) | Consolidation.is_abandoned(now)
    with transaction.atomic():
        whose = Consolidation.objects.filter(pk=consolidation_id).values_list("user_id", flat=True).first()
        if whose is None:
            return None
        # A forgetting restarts running consolidations. With this lock, it comes before the claim or sees it.
        lock_forgetting_counts([whose, *scopes_of(whose)])
        claimed = Consolidation.objects.filter(free, pk=consolidation_id).update(
            status=Consolidation.Status.RUNNING,
            fence=F("fence") + 1,
            lease_expires_at=now + Consolidation.LEASE,
        )
        if not claimed:
            return None
        return ConsolidationLease(
            consolidation_id, Consolidation.objects.values_list("fence", flat=True).get(pk=consolidation_id)
        )


def restart_consolidations(*, user_ids: Iterable[UUID], now: datetime) -> None:
    """Lock and restart the running consolidations of these users, in the caller's transaction, which forgets texts that
    they have read. Their workers lose the lease, but this does not count as a failed attempt."""
    running = Consolidation.objects.filter(user__in=user_ids, status=Consolidation.Status.RUNNING)
    under_way = list(running.select_for_update().order_by("pk").values_list("pk", flat=True))
    # Never lower the fence, or a holder's fence would be assigned again.
    next_beginning = F("fence") - F("fence") % _CLAIMS + _CLAIMS
    Consolidation.objects.filter(pk__in=under_way).update(
        status=Consolidation.Status.PENDING, fence=next_beginning, lease_expires_at=now
    )


def release_all_consolidations(*, now: datetime) -> None:
    """End all leases and wake workers. Only for a process that knows it is the only one, so that all holders are gone,
    and the broker's messages, too."""
    with transaction.atomic():
        Consolidation.objects.filter(status=Consolidation.Status.RUNNING).update(lease_expires_at=now)
        active = Consolidation.objects.filter(status__in=Consolidation.ACTIVE)
        for consolidation_id in active.order_by("created_at", "pk").values_list("pk", flat=True):
            jobs.wake_worker("chatapp.long_term.tasks.consolidate", str(consolidation_id))


def _lock_held(lease: ConsolidationLease) -> Consolidation:
    held = Consolidation.objects.select_for_update().filter(
        pk=lease.consolidation_id, fence=lease.fence, status=Consolidation.Status.RUNNING
    )
    row = held.first()
    if row is None:
        raise LeaseLost("Another worker took this consolidation over, or it began again.")
    return row


@transaction.atomic
def complete_consolidation(*, lease: ConsolidationLease, new: NewProfile, now: datetime) -> None:
    """Store the new version, and mark its entries as consolidated. If the profile was changed meanwhile, make the
    consolidation pending again instead. Raise LeaseLost."""
    row = _lock_held(lease)
    profile = lock_profile(row.user_id)
    if profile.version != new.version:
        _put_back(row, now)
        return
    notes = MemoryEntry.objects.filter(pk__in=list(new.revisions)).values_list("pk", "text")
    texts = {str(pk): text for pk, text in notes}
    if set_text(profile, new.text, ProfileVersion.Author.CONSOLIDATION, now, notes=texts):
        row.version = profile.version
    for entry_id in sorted(new.revisions):
        # Sorted, as the lock order everywhere. Entries that were edited meanwhile are read again later.
        MemoryEntry.objects.filter(pk=entry_id, revision=new.revisions[entry_id]).update(consolidated_at=now)
    store_superseded_pairs(row.user_id, new.over)
    row.entry_count = len(new.revisions)
    _end(row, Consolidation.Status.DONE, "", now)


def _put_back(row: Consolidation, now: datetime) -> None:
    row.status = Consolidation.Status.PENDING
    row.lease_expires_at = now
    row.save(update_fields=["status", "lease_expires_at"])
    jobs.wake_worker("chatapp.long_term.tasks.consolidate", str(row.pk))


@transaction.atomic
def end_consolidation(*, lease: ConsolidationLease, status: str, reason: str = "", now: datetime) -> None:
    """End a consolidation without a new version; `reason` says why. Raise LeaseLost."""
    _end(_lock_held(lease), status, reason, now)


def _end(row: Consolidation, status: str, reason: str, now: datetime) -> None:
    row.status, row.error, row.finished_at = status, reason, now
    row.lease_expires_at = None
    row.save()
