"""Runs consolidations in a worker, from queueing to `MEMORY.md`. Each step can be repeated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from agents.background.calls import BackgroundCaller
from agents.errors import ModelError
from agents.types import ModelRequest
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.budgets.values import Spender
from chatapp.accounts.models import User
from chatapp.context.policies import rules_for
from chatapp.long_term import files
from chatapp.long_term.actions.consolidations import (
    ConsolidationLease,
    NewProfile,
    claim_consolidation,
    complete_consolidation,
    end_consolidation,
    queue_consolidation,
)
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.long_term.selectors.profile import (
    count_since,
    edits_of,
    has_unknown_entries,
    profile_of,
    unknown_entries,
    users_due,
)
from chatapp.long_term.selectors.tombstones import fingerprinter_for, tombstones_of
from chatapp.operations import clock
from chatapp.operations.errors import UNEXPECTED, LeaseLost, NotFound
from chatapp.providers.actions import record_made_calls
from chatapp.providers.chat_models import ask_in_thread, chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model, fast_model_of
from chatapp.providers.usage import priced_call
from chatapp.recall.selectors.claims import StatementPlace, find_statement
from chatapp.recall.user_search import search_memory
from memory.long_term.consolidation import (
    DayNotes,
    Over,
    UserEdits,
    accept_profile,
    consolidation_messages,
    fit_notes,
    split_superseded_section,
)
from memory.long_term.profile import FRAME_TOKENS
from memory.long_term.tombstones import Tombstones
from memory.tokens import estimate_text

log = logging.getLogger(__name__)

INPUT_TOKENS = 12_000
"""The most tokens of notes in one model call, which is also limited to half of the model's input budget."""
OVER_TOKENS = 400
LOOKED_AT = 30
PASSES_A_DAY = 8
NO_MODEL = "No language model is configured; the Demo model cannot write profiles."
WORKERS_DIED = "Workers died during the model call, or the profile kept changing."


def queue_due() -> int:
    """Queue the nightly consolidation of every user for whom it is due; return how many."""
    now = clock.now()
    queued = [queue_consolidation(user_id=user_id, night=night, now=now) for user_id, night in users_due(now)]
    return sum(row is not None for row in queued)


@dataclass(frozen=True, slots=True)
class _Work:
    """A claimed consolidation, with everything that its model call needs."""

    row: Consolidation
    config: ModelConfig
    spender: Spender
    entries: Sequence[MemoryEntry]
    edits: UserEdits
    profile: str
    version: int
    max_tokens: int

    @property
    def request(self) -> ModelRequest:
        notes = [DayNotes(entry.day, entry.text) for entry in self.entries]
        messages = consolidation_messages(self.profile, notes, self.edits, self.max_tokens)
        return ModelRequest(messages, max_output_tokens=self.max_tokens * 5 // 4 + OVER_TOKENS)

    @property
    def is_barred(self) -> Callable[[str], bool]:
        """Return a check of whether a line repeats something that the user removed or forgot."""
        prints = fingerprinter_for(self.row.user_id)
        removed = Tombstones(prints.fingerprints(self.edits.removed), prints)
        forgotten = tombstones_of(self.row.user_id)
        return lambda line: removed.cover(line) or forgotten.cover(line)


def consolidate(consolidation_id: UUID) -> None:
    """Run a consolidation, in the worker. Idempotent, and safe to be killed at any point."""
    # Celery may deliver the same id twice, and the sweep sends it again.
    lease = claim_consolidation(consolidation_id=consolidation_id, now=clock.now())
    if lease is None:
        return
    try:
        row = _carry_out(lease)
    except LeaseLost as lost:
        log.warning("Lost the lease of consolidation %s: %s", consolidation_id, lost)
        return
    except Exception:
        log.exception("Consolidation %s failed.", consolidation_id)
        # Otherwise the row stays active until its lease ends, and blocks the user's next consolidation.
        _give_up(lease)
        return
    files.write_profiles([row.user_id])
    _go_on(row)


def _carry_out(lease: ConsolidationLease) -> Consolidation:
    row = Consolidation.objects.get(pk=lease.consolidation_id)
    if lease.is_last_attempt:
        _end_failed(lease, WORKERS_DIED)
        return row
    entries = unknown_entries(row)
    reason = _reason_not_to(row)
    if reason or not entries:
        status = Consolidation.Status.SKIPPED if reason else Consolidation.Status.DONE
        end_consolidation(lease=lease, status=status, reason=reason, now=clock.now())
        return row
    _ask_and_complete(lease, _read_work(row, entries))
    return row


def _reason_not_to(row: Consolidation) -> str:
    """Return why no model can be called; empty if one can."""
    try:
        return NO_MODEL if _model(row).kind == ModelConfig.Kind.DEMO else ""
    except NotFound as error:
        return error.message


def _model(row: Consolidation) -> ModelConfig:
    return fast_model_of(default_model(row.user_id))


def _read_work(row: Consolidation, entries: Sequence[MemoryEntry]) -> _Work:
    config = _model(row)
    rules = rules_for(config)
    room = min(INPUT_TOKENS, rules.calibration.invert(rules.budget.input_tokens) // 2)
    notes = fit_notes([DayNotes(entry.day, entry.text) for entry in entries], room)
    profile = profile_of(row.user_id)
    edits = edits_of(row.user_id)
    own = estimate_text("\n".join(edits.own))
    return _Work(
        row=row,
        config=config,
        spender=spender_of(row.user_id),
        entries=entries[: len(notes)],
        edits=edits,
        profile=profile.text,
        version=profile.version,
        # Keep what the user wrote, even if it alone exceeds the budget.
        max_tokens=max(rules.policy.profile_budget - FRAME_TOKENS, own),
    )


def _ask_and_complete(lease: ConsolidationLease, work: _Work) -> None:
    asking = BackgroundCaller(chat_model_for(work.config, work.spender))
    try:
        answer = ask_in_thread(asking.ask(work.request))
    except ModelError as error:
        _end_failed(lease, f"The model failed ({error.category}): {error.message}")
        return
    finally:
        # Record them separately, because the calls count even if the lease was lost meanwhile.
        calls = [priced_call(work.config, usage, "memory") for usage in asking.usages]
        record_made_calls(user_id=work.row.user_id, conversation_id=None, calls=calls)
    profile, over = split_superseded_section(answer)
    text = accept_profile(profile, work.edits, max_tokens=work.max_tokens, is_barred=work.is_barred)
    if text is None:
        _end_failed(lease, "The model returned nothing.")
        return
    revisions = {entry.pk: entry.revision for entry in work.entries}
    new = NewProfile(text, work.version, revisions, _places_of(work.row.user, over))
    complete_consolidation(lease=lease, new=new, now=clock.now())


def _places_of(user: User, named: Sequence[Over]) -> list[tuple[StatementPlace, StatementPlace]]:
    """Return pairs of places: each place of an older statement, and the newest place of the newer one, if that is
    later. A statement that nobody said has no place."""
    pairs: list[tuple[StatementPlace, StatementPlace]] = []
    for over in named:
        newer = max(_said(user, over.newer, over.older), key=lambda said: said.at, default=None)
        if newer is not None:
            older = _said(user, over.older, over.newer)
            pairs += [(said, newer) for said in older if said.at < newer.at]
    return pairs


def _said(user: User, statement: str, other: str) -> list[StatementPlace]:
    now = clock.now()
    found = search_memory(user_id=user.pk, query=statement, limit=LOOKED_AT, now=now, zone=user.zone)
    return find_statement(statement, other, found)


def _end_failed(lease: ConsolidationLease, reason: str) -> None:
    end_consolidation(lease=lease, status=Consolidation.Status.FAILED, reason=reason, now=clock.now())


def _give_up(lease: ConsolidationLease) -> None:
    try:
        _end_failed(lease, UNEXPECTED)
    except LeaseLost as lost:
        log.warning("Lost the lease of consolidation %s: %s", lease.consolidation_id, lost)


def _go_on(row: Consolidation) -> None:
    """Queue another pass if entries are left. A long backlog takes several passes, up to `PASSES_A_DAY`."""
    # Refresh, because the row was ended through another instance, which was read under the lock.
    row.refresh_from_db()
    now = clock.now()
    is_done = row.status == Consolidation.Status.DONE and row.entry_count
    if (
        is_done
        and has_unknown_entries(row)
        and count_since(row.user_id, now - timedelta(days=1)) < PASSES_A_DAY
    ):
        queue_consolidation(user_id=row.user_id, now=now)
