"""Carries out removals in pieces: for about a second in the request, then in the worker.

Each piece is an idempotent transaction, so the work resumes after a crash at any point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from chatapp.accounts.models import User
from chatapp.files import offloads
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.forget import forget_pieces
from chatapp.forgetting.actions.forget_all import bar_entries, forget_copies_of, read_copies
from chatapp.forgetting.actions.removals import (
    claim_removal,
    end_removal,
    enter_phase,
    publish_forgotten_later,
    reduce_to_row_deletion,
    release_removal,
    remove_rows,
    remove_texts_behind,
)
from chatapp.forgetting.models import ForgetProposal, Removal
from chatapp.forgetting.selectors.forgotten import has_abandoned_index
from chatapp.operations.database.work_budget import UNBOUNDED, Budget, Pace, PacedTransactions
from chatapp.operations.workers import jobs
from chatapp.recall.actions.removal import (
    RemovedDocuments,
    clean_postings,
    delete_abandoned,
    delete_documents,
    documents_in,
    documents_made_of,
    hide_documents,
    read_removed_documents,
)
from chatapp.recall.models import SearchDocument

ALL_AT_ONCE = Pace(seconds=float("inf"), sleep=lambda _: None)
"""For a removal inside a caller's transaction, which keeps its locks between pieces anyway."""


@dataclass(slots=True)
class Removing:
    """One removal in progress. The caller must clean up its `leftovers`."""

    removal: Removal
    now: datetime
    leftovers: list[Leftovers] = field(default_factory=list)
    proposal: ForgetProposal | None = None
    _has_removed_texts: bool = False
    _documents: list[RemovedDocuments] | None = None
    _next_term: int = 0

    def hide(self) -> None:
        """Remove all that other conversations, search and memory show of the texts, so that only hidden rows are
        left."""
        removal = self.removal
        if removal.phase == Removal.Phase.CHOSEN:
            self._forget_chosen()
        if removal.phase == Removal.Phase.IMPORT:  # the importing process has died
            enter_phase(removal, Removal.Phase.HIDE)
        if removal.phase == Removal.Phase.HIDE:
            self._hide_conversation()
        if removal.phase == Removal.Phase.TRACES:
            self._redact()

    def _hide_conversation(self) -> None:
        hide_documents(self.removal.home)
        bar_entries(self.removal)
        enter_phase(self.removal, Removal.Phase.TRACES if self.removal.forgets else Removal.Phase.INDEX)

    def _forget_chosen(self) -> None:
        user = User.objects.get(pk=self.removal.user_id)
        # Rest only briefly: a user is waiting, and the lock is free while the next piece is prepared.
        turns = PacedTransactions(UNBOUNDED, lambda _: False)
        for done in forget_pieces(self.removal, user, self.now, turns):
            self.leftovers += done.leftovers
            self.proposal = done.proposal

    def _redact(self) -> None:
        left, self.proposal = forget_copies_of(self.removal, read_copies(self.removal, self.now))
        self.leftovers.append(left)

    def go_on(self, pace: Pace) -> bool:
        """Run steps for as long as `pace` allows; return whether the removal is complete."""
        return pace.work(lambda: self._step(pace.budget))

    def _step(self, budget: Budget) -> bool:
        """Run one transaction; return whether it was the last."""
        removal = self.removal
        match removal.phase:
            case Removal.Phase.BEHIND:
                if self._go_on_behind(budget):
                    end_removal(removal)
                    return True
            case Removal.Phase.INDEX:
                if self._clean_index(documents_in(removal.home), budget):
                    if removal.keeps_rows:
                        end_removal(removal)
                        return True
                    enter_phase(removal, Removal.Phase.ROWS)
            case Removal.Phase.ROWS:
                if remove_rows(removal, budget):
                    enter_phase(removal, Removal.Phase.FILES)
            case _:
                # Delete files after the rows that name them. A retry of this phase deletes a folder that a crash left.
                transaction.on_commit(partial(offloads.delete_folders, [removal.home]))
                end_removal(removal)
                return True
        return False

    def _go_on_behind(self, budget: Budget) -> bool:
        """Clean up, in one transaction, behind many forgotten messages and entries; return whether nothing is left."""
        removal, chosen = self.removal, self.removal.chosen
        if chosen.get("untold"):
            publish_forgotten_later(removal)
            return False
        if not self._has_removed_texts:
            self._has_removed_texts = remove_texts_behind(removal, budget)
            return False
        whole = [UUID(pk) for pk in chosen.get("sources", ()) if pk not in chosen.get("lines", ())]
        return self._clean_index(documents_made_of(whole), budget)

    def _clean_index(self, documents: QuerySet[SearchDocument], budget: Budget) -> bool:
        if self._documents is None:
            self._documents = read_removed_documents(documents, with_terms=True)
        if not self._documents:
            return delete_documents(documents, budget)
        self._next_term = clean_postings(self._documents[0], self._next_term, budget)
        if self._next_term >= len(self._documents[0].terms):
            self._next_term = 0
            self._documents.pop(0)
        return False


def work_on(work: Iterable[Removing], pace: Pace) -> None:
    """Work on removals for as long as `pace` allows, and wake a worker for the unfinished ones."""
    pace = ALL_AT_ONCE if connection.in_atomic_block else pace
    for one in work:
        if not one.go_on(pace):
            release_removal(removal_id=one.removal.pk, now=one.now)
            jobs.wake_worker("chatapp.forgetting.tasks.remove_rest", str(one.removal.pk))
            # The time is up: run one step of each other removal and pass it to a worker, too.
            pace = Pace(0.0, pace.budget, pace.clock, pace.sleep)
    if has_abandoned_index() and not pace.work(lambda: delete_abandoned(pace.budget)):
        jobs.wake_worker("chatapp.forgetting.tasks.delete_abandoned_indexes", "")


def delete_abandoned_indexes(pace: Pace) -> bool:
    """Delete indexes that have no owner; return whether none is left."""
    pace = ALL_AT_ONCE if connection.in_atomic_block else pace
    return pace.work(lambda: delete_abandoned(pace.budget))


def claim(removal_id: int, *, now: datetime) -> Removing | None:
    """Take the lease of a removal; None if it is done or another process holds it."""
    removal = claim_removal(removal_id=removal_id, now=now)
    if removal is None:
        return None
    if not User.objects.filter(pk=removal.user_id).exists():
        reduce_to_row_deletion(removal)
    return Removing(removal, now)
