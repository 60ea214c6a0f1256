"""Queues compactions and carries them out, in a worker or, if the policy is inline, in the run itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID

from django.conf import settings

from agents.background.summarise import SummaryResult, extract_fallback, summarise
from agents.requests.context import AssembledContext
from agents.types import TokenUsage
from chatapp.compaction.actions.compactions import (
    claim_compaction,
    complete_compaction,
    fail_compaction,
    note_waiting,
    queue_compaction,
    release_compaction,
    renew_compaction,
)
from chatapp.compaction.models import Compaction
from chatapp.compaction.planning import (
    AUTOMATIC,
    FINAL,
    CompactionOptions,
    find_emergency_span,
    find_span,
    is_full,
    load_for_planning,
    summary_model_of,
)
from chatapp.compaction.selectors import active_compaction
from chatapp.compaction.separate_loop import run_in_separate_loop
from chatapp.compaction.values import CompactionLease
from chatapp.compaction.work import CompactionWork, finished_summary, read_new_work
from chatapp.context.assembly import LoadedContext
from chatapp.long_term import files as memory_files
from chatapp.operations import clock
from chatapp.operations.database.ids import name_process
from chatapp.operations.database.threads import OUTAGE_ERRORS, in_database, retry_on_outage
from chatapp.operations.errors import UNEXPECTED, LeaseLost, NotFound
from chatapp.providers.actions import note_named_window, record_made_calls
from chatapp.providers.chat_models import chat_model_for
from memory.tokens import estimate_text

log = logging.getLogger(__name__)

WORKERS_DIED = "earlier workers died while generating it"
WAIT_STEP_S = 0.1
WAIT_LIMIT_S = 60.0


# --- Queueing --------------------------------------------------------------------------------------------


def queue_next_compaction(conversation_id: UUID, *, is_early: bool = False) -> Compaction | None:
    """Queue the compaction that is due, and return it; None if none is due.

    `is_early` means that no answer waits for it yet: if the policy is inline, it is left to the next answer.
    """
    loaded = load_for_planning(conversation_id)
    if loaded is None:
        return None
    if loaded.rules.hooks_decide_compaction:
        return (
            queue_due(loaded, CompactionOptions(at_once=True)) if not is_early and is_full(loaded) else None
        )
    if not loaded.rules.policy.has_summary:
        return None
    if is_early and loaded.rules.policy.is_inline:
        return None
    queued = queue_due(loaded)
    waits = queued is None and find_span(loaded, FINAL) is not None
    note_waiting(conversation_id=conversation_id, waits=waits)
    return queued


def summarise_rest(conversation_id: UUID) -> Compaction | None:
    """Queue and return a compaction of the messages that left the view of a quiet conversation, however few. Return
    None if none is due."""
    # Clear the mark first: if loading failed with the mark set, each sweep would return this conversation.
    note_waiting(conversation_id=conversation_id, waits=False)
    loaded = load_for_planning(conversation_id)
    return queue_due(loaded, FINAL) if loaded is not None and loaded.rules.summarises else None


def queue_due(loaded: LoadedContext, options: CompactionOptions = AUTOMATIC) -> Compaction | None:
    """Queue the compaction that is due. Return None if none is due, or one is active already."""
    return _queue(loaded, find_span(loaded, options))


def queue_emergency(loaded: LoadedContext, sent: AssembledContext) -> Compaction | None:
    """Queue a compaction of messages dropped after the provider refused a request, so that memory gets them, too."""
    if not loaded.rules.summarises:
        return None
    return _queue(loaded, find_emergency_span(loaded, sent))


def _queue(loaded: LoadedContext, planned: Compaction | None, holder: str = "") -> Compaction | None:
    if planned is None:
        return None
    planned.model = summary_model_of(loaded)
    return queue_compaction(
        planned=planned,
        conversation_id=loaded.conversation.pk,
        seen_from=loaded.branch,
        now=clock.now(),
        holder=holder,
    )


# --- Carrying out ----------------------------------------------------------------------------------------


def compact(compaction_id: UUID) -> None:
    """Turn a queued row into a checkpoint, a memory entry and a daily file, in a worker. Safe to call twice."""
    # Celery may deliver an id twice, and the sweep sends it again.
    lease = claim_compaction(compaction_id=compaction_id, holder=name_process(), now=clock.now())
    if lease is None:
        return
    try:
        work = read_new_work(lease)
        # Celery tasks cannot be coroutines.
        done = asyncio.run(_summarise(work))
        complete_compaction(lease=lease, result=finished_summary(work, done), now=clock.now())
    except LeaseLost as lost:
        log.warning("Lost the lease of compaction %s: %s", compaction_id, lost)
        return
    except Exception:
        log.exception("Compaction %s failed.", compaction_id)
        _give_up(lease)
        return
    # After the commit, because files are written from rows; after a crash, the sweep writes them.
    memory_files.sweep_unwritten()
    queue_next_compaction(work.row.conversation_id)  # a long backlog becomes several checkpoints


async def compact_inline(loaded: LoadedContext, options: CompactionOptions = AUTOMATIC) -> bool:
    """Compact before the model is called. Return whether the context changed.

    Wait for a worker if it has begun already. If this process dies, the lease of the row runs out, and the sweep hands
    the row to a worker.
    """
    work = await in_database(_begin_inline)(loaded, options)
    if isinstance(work, Compaction):
        return await wait_for(work)
    if work is None:
        return False
    try:
        # In a separate event loop, because computing a summary would block every stream of this process.
        done = await run_in_separate_loop(lambda: _summarise(work))
        result = await in_database(finished_summary)(work, done)
        await in_database(complete_compaction)(lease=work.lease, result=result, now=clock.now())
    # The answer was stopped, but the summary is still due: a worker writes it now, not when the lease runs out.
    except asyncio.CancelledError:
        await in_database(release_compaction)(lease=work.lease, now=clock.now())
        raise
    except LeaseLost as lost:
        log.warning("Lost the lease of compaction %s: %s", work.row.pk, lost)
        return await wait_for(work.row)
    except Exception:
        log.exception("Compaction %s failed.", work.row.pk)
        await in_database(_give_up)(work.lease)
        return False
    return True


def _begin_inline(loaded: LoadedContext, options: CompactionOptions) -> CompactionWork | Compaction | None:
    """Return the work of a compaction claimed here, else the one that is active already; None if none is due."""
    planned = find_span(loaded, options)
    if planned is None:
        return None
    row = _queue(loaded, planned, name_process())
    if row is None:
        return active_compaction(loaded.conversation.pk)
    return read_new_work(CompactionLease(row.pk, row.fence))


async def wait_for(row: Compaction, limit_s: float = WAIT_LIMIT_S) -> bool:
    """Wait until a compaction has ended, for `limit_s` at most; return whether it is done. Raise NotFound if its
    conversation is deleted meanwhile."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while row.status in Compaction.ACTIVE and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(WAIT_STEP_S)
        try:
            # From the database, because another process may be doing the work.
            await in_database(row.refresh_from_db)()
        except Compaction.DoesNotExist:
            raise NotFound from None
    return row.status == Compaction.Status.DONE


def _give_up(lease: CompactionLease) -> None:
    try:
        fail_compaction(lease=lease, error=UNEXPECTED, calls=(), now=clock.now())
    except LeaseLost as lost:
        log.warning("Lost the lease of compaction %s: %s", lease.compaction_id, lost)


async def _summarise(work: CompactionWork) -> SummaryResult:
    if not work.policy.behaviour.writes_summaries:
        text = work.policy.behaviour.draft(work.previous, work.messages, work.policy.summary_max_tokens)
        return SummaryResult(text, estimate_text(text))
    if work.lease.is_last_attempt:
        return extract_fallback(
            work.messages, previous=work.previous, policy=work.policy, reason=WORKERS_DIED
        )

    async def stay_alive() -> None:
        await in_database(renew_compaction)(lease=work.lease, now=clock.now())

    usages: list[TokenUsage] = []
    try:
        done = await _while_held(work.lease, ask_for_summary(work, before_call=stay_alive, usages=usages))
    finally:
        # In their own transaction: the calls count even if a stop or a forgetting ends this compaction meanwhile.
        await retry_on_outage(record_made_calls)(
            user_id=work.row.conversation.owner_id,
            conversation_id=work.row.conversation_id,
            calls=work.price_calls(usages),
        )
    if done.window_tokens:
        await in_database(note_named_window)(
            config=work.config,
            conversation_id=work.row.conversation_id,
            tokens=done.window_tokens,
            named_by=str(work.row.pk),
            now=clock.now(),
        )
    return done


async def ask_for_summary(
    work: CompactionWork,
    before_call: Callable[[], Awaitable[None]] | None = None,
    usages: list[TokenUsage] | None = None,
) -> SummaryResult:
    """Return the summary written by the model of the work. Append the usage of its calls to `usages`."""
    return await summarise(
        chat_model_for(work.config, work.spender),
        work.messages,
        previous=work.previous,
        policy=work.policy,
        window=work.rules.budget,
        calibration=work.rules.calibration,
        keep=work.row.keep_hint,
        before_call=before_call,
        known=[one.text for one in work.known],
        usages=usages,
    )


async def _while_held(lease: CompactionLease, summary: Coroutine[Any, Any, SummaryResult]) -> SummaryResult:
    """Return the summary. Renew the lease meanwhile, because a call may take longer than a lease lasts. Raise LeaseLost
    as soon as another worker holds it."""
    writing, holding = asyncio.create_task(summary), asyncio.create_task(_hold(lease))
    try:
        await asyncio.wait({writing, holding}, return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            # `_hold` ends only with an error, e.g. if the lease is lost.
            holding.result()
        return await writing
    finally:
        writing.cancel()
        holding.cancel()
        await asyncio.gather(writing, holding, return_exceptions=True)


async def _hold(lease: CompactionLease) -> None:
    while True:
        await asyncio.sleep(settings.HEARTBEAT_S)
        try:
            await in_database(renew_compaction)(lease=lease, now=clock.now())
        # The lease may outlast the outage. The next renewal detects if it has not.
        except OUTAGE_ERRORS:
            log.warning(
                "The lease of compaction %s could not be renewed.", lease.compaction_id, exc_info=True
            )
