"""Runs as detached tasks of this process: started, stopped, ended and stored.

`answering` asks the model; this module makes sure that every run ends, whatever happens. `loops` renews the leases of
active runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from chatapp.operations import clock
from chatapp.operations.caching.editions import one_edition
from chatapp.operations.database.ids import name_process
from chatapp.operations.database.outages import is_outage
from chatapp.operations.database.threads import (
    OUTAGE_ERRORS,
    first_in_writer,
    in_database,
    in_writer,
    retry_on_outage,
)
from chatapp.operations.errors import LeaseLost, ReadForgotten
from chatapp.operations.telemetry import Span, cause, span
from chatapp.realtime.hub import Reader, hub
from chatapp.runs import hooks
from chatapp.runs.actions.claims import Claim, ClaimedRun
from chatapp.runs.actions.endings import INTERRUPTED, Outcome, finish_run, interrupt_run, keep_late_text
from chatapp.runs.actions.runs import Lease, claim_run, extend_expired_lease_once
from chatapp.runs.answering import Session
from chatapp.runs.models import Run
from chatapp.runs.run_context import (
    PreparedRun,
    assemble_and_recall,
    describe_new,
    describe_run,
    prepare_claimed,
)
from chatapp.runs.selectors import answer_being_written, dead_runs
from chatapp.runs.streaming import DeltaPump, LiveAnswer
from memory.errors import ContextError

log = logging.getLogger(__name__)

READER_S = 5.0
"""How long a run waits before its first model call for the reader that requested a stream. On a busy machine one second
was too short: the reader got the whole answer at the end and no deltas."""
OUTAGE = "The database did not answer for too long; what was written so far is kept. Please try again."
FAILED = "Something went wrong on our side; your message is stored. Please try again."
SHUTTING_DOWN = "The service was restarted while it was answering; what was written so far is kept."


@dataclass(slots=True)
class _Work:
    task: asyncio.Task[None]
    caused_by: str = ""
    """The tracing span of the request or frame that started it here."""
    live: LiveAnswer | None = None
    stop_wanted: bool = False
    must_end: bool = False
    is_finishing: bool = False
    may_ask: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the reader listens, so that it misses no part of the answer."""


@dataclass(slots=True)
class Process:
    """The runs that this process is answering, by run id, and its loops."""

    works: dict[str, _Work] = field(default_factory=dict)
    by_message: dict[str, LiveAnswer] = field(default_factory=dict)
    loops: list[asyncio.Task[None]] = field(default_factory=list)
    pump: DeltaPump = field(default_factory=DeltaPump)
    is_draining: bool = False
    up_since: float = 0.0
    """Since when it can take runs: since its start, or since the last database outage."""


process = Process()


def start(run_id: str) -> None:
    """Answer a queued run in its own task, or let a run that waits for its reader call the model. Call it on the event
    loop."""
    if run_id in process.works:
        process.works[run_id].may_ask.set()
        return
    # Its row stays queued until another process, or the next one started here, adopts it.
    if process.is_draining:
        return
    loop = asyncio.get_running_loop()
    # Use a new context: a run must not inherit that of the request or socket that happened to start it.
    task = loop.create_task(_execute(run_id), context=contextvars.Context())
    # The event loop keeps only weak references to tasks; this reference keeps the task alive.
    process.works[run_id] = _Work(task, cause())
    task.add_done_callback(lambda _: process.works.pop(run_id, None))


def claim_here(*, waits_for_reader: bool = False) -> Claim | None:
    """Return a claim with which a new run is stored as this process's own; None while the process drains. Call it on
    the event loop.

    `waits_for_reader`: the run calls the model once `start` is called, or after READER_S if no reader connects.
    """
    if process.is_draining:
        return None
    loop = asyncio.get_running_loop()

    caused_by = cause()

    def begin(claimed: ClaimedRun) -> None:
        # Schedule it before the database thread returns, so that the sender's `start` finds the run in `works`.
        loop.call_soon_threadsafe(_begin, claimed, waits_for_reader, caused_by)

    return Claim(name_process(), describe_new, begin)


def claim_for_request() -> Claim | None:
    """Return a claim for a request handled on the server's event loop; None on any other loop, which may end before the
    run."""
    return claim_here(waits_for_reader=True) if hub.loop is asyncio.get_running_loop() else None


def _begin(claimed: ClaimedRun, waits_for_reader: bool, caused_by: str) -> None:
    """Answer a run that this process has claimed. The sender need not stay connected."""
    run_id = str(claimed.run.pk)
    task = asyncio.get_running_loop().create_task(_answer_claimed(claimed), context=contextvars.Context())
    work = process.works[run_id] = _Work(task, caused_by)
    if not waits_for_reader:
        work.may_ask.set()
    task.add_done_callback(lambda _: process.works.pop(run_id, None))


def live_text(message_id: str) -> str | None:
    """Return the text of an answer that this process is writing; None for any other message."""
    live = process.by_message.get(message_id)
    return live.answer.text if live else None


async def send_answer_so_far(conversation_id: UUID, reader: Reader) -> None:
    """Send the text so far to a reader that connects during an answer, or ask the process that writes it."""
    answer_id = await in_database(answer_being_written)(conversation_id)
    if answer_id is None:
        return
    live = process.by_message.get(answer_id)
    if live is not None:
        live.tell_reader(reader)
    else:
        hub.ask_for_text(answer_id)


def tell_all(message_id: str) -> None:
    live = process.by_message.get(message_id)
    if live is not None:
        live.tell_all()


def active_count() -> int:
    return len(process.works)


def is_answering(run_id: UUID) -> bool:
    """Return whether this process is working on the run. Then the run is alive, even if its lease has expired."""
    return str(run_id) in process.works


def stop_here(run_id: str) -> None:
    """Stop the run if this process is answering it. Its text so far becomes the answer."""
    work = process.works.get(run_id)
    if work is None or work.stop_wanted:
        return
    work.stop_wanted = True
    cancel(work)


def cancel(work: _Work) -> None:
    """Cancel the work, but not during the transaction that claims or ends the run: its result would be lost."""
    work.must_end = True
    if work.live is not None and not work.is_finishing:
        work.task.cancel()


async def _execute(run_id: str) -> None:
    try:
        prepared, lease = await _claim(UUID(run_id))
    except Run.DoesNotExist:
        log.info("Run %s was deleted with its conversation before it was claimed.", run_id)
        return
    except Exception:
        # Nothing was claimed: the row stays queued, and the sweep retries or gives up.
        log.exception("Run %s could not be claimed.", run_id)
        return
    if lease is not None:
        await _answer_to_the_end(prepared, lease)


async def _answer_claimed(claimed: ClaimedRun) -> None:
    try:
        prepared = await retry_on_outage(_prepare)(claimed)
    except Exception:
        # It is already claimed: other processes would ignore it until its lease expires.
        log.exception("Run %s could not be prepared.", claimed.run.pk)
        await interrupt_runs([(claimed.run.pk, claimed.lease.fence)], INTERRUPTED)
        return
    with suppress(TimeoutError):
        await asyncio.wait_for(process.works[str(claimed.run.pk)].may_ask.wait(), READER_S)
    await _answer_to_the_end(prepared, claimed.lease)


def _prepare(claimed: ClaimedRun) -> PreparedRun:
    """Load everything for the first model call in one database hop, so that a run that has begun does not queue behind
    new ones."""
    with one_edition(claimed.edition):
        prepared = prepare_claimed(claimed)
        loaded = prepared.context
        if loaded is None or prepared.plan is not None or not hooks.has_no_start_hooks(loaded):
            return prepared
        try:
            return replace(prepared, assembled=assemble_and_recall(loaded, claimed.run.pk))
        except ContextError:  # the session gets the same error and reports it
            return prepared


async def _answer_to_the_end(prepared: PreparedRun, lease: Lease) -> None:
    told = {
        "run_id": str(lease.run_id),
        "conversation_id": prepared.conversation_id,
        "model": prepared.model_name,
    }
    # Work that follows the run links back to this span.
    with span("run", caused_by=[process.works[str(lease.run_id)].caused_by], **told) as measured:
        await _answer_and_finish(prepared, lease, measured)


async def _answer_and_finish(prepared: PreparedRun, lease: Lease, measured: Span) -> None:
    run_id = str(lease.run_id)
    live = LiveAnswer(lease, prepared.conversation_id)
    work = process.works[run_id]
    work.live = live
    process.by_message[str(lease.answer_id)] = live
    session = Session(prepared, live, process.pump)
    try:
        outcome = await _answer(session, work)
        measured.set_attribute("palimpsest.status", str(outcome.status))
        # From here on `cancel` does not cancel the task.
        work.is_finishing = True
        # Send the last deltas before the events of the end, because readers disconnect on those.
        process.pump.forget(live)
        await _finish(lease, outcome)
    except LeaseLost as lost:
        log.warning("This process lost the lease of run %s: %s", run_id, lost)
        process.pump.forget(live)
        await _keep_late_text(live, prepared.forgotten_count)
    finally:
        # Remove it only after the end is stored: until then, a reader that connects gets the text from here.
        process.by_message.pop(str(lease.answer_id), None)
    if not session.leaves_nothing:
        await _end_turn(run_id)


async def _claim(run_id: UUID) -> tuple[PreparedRun, Lease | None]:
    """Return the run's context and its lease, or None as the lease if another process has claimed the run. Read the
    context again if something was forgotten before the claim."""
    while True:
        prepared = await retry_on_outage(describe_run)(run_id)
        try:
            lease = await first_in_writer(claim_run)(
                run_id=run_id,
                holder=name_process(),
                model_name=prepared.model_name,
                mode=prepared.mode,
                now=clock.now(),
                forgotten_count=prepared.forgotten_count,
            )
        except ReadForgotten:
            continue
        return prepared, lease


async def _answer(session: Session, work: _Work) -> Outcome:
    try:
        # `cancel` only sets this flag while the run is being claimed or waits for its reader.
        if work.must_end:
            raise asyncio.CancelledError
        return await session.answer()
    except asyncio.CancelledError:
        # Clear the cancellation, so that the code after it can await.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if work.stop_wanted:
            return session.ended(Run.Status.STOPPED)
        return session.ended(Run.Status.INTERRUPTED, "interrupted", SHUTTING_DOWN)
    except LeaseLost:
        raise
    except Exception as error:
        log.exception("Run %s failed.", session.live.lease.run_id)
        if is_outage(error):
            return session.ended(Run.Status.FAILED, "unavailable", OUTAGE)
        return session.ended(Run.Status.FAILED, "internal", FAILED, type(error).__name__)


async def _finish(lease: Lease, outcome: Outcome) -> None:
    """Store the outcome, retrying while the database is away: an answer that was shown must not be lost.

    If the database rejects the outcome for its content, interrupt the run with the stored text instead, so that every
    run ends.
    """
    while True:
        try:
            following = await in_writer(finish_run)(lease=lease, outcome=outcome, now=clock.now())
            if following is not None:
                start(str(following.pk))
            return
        except LeaseLost:
            # Also if a first try was committed but its reply was lost: then the run has ended as it should.
            raise
        except OUTAGE_ERRORS:
            log.exception("Run %s could not be finished; trying again.", lease.run_id)
            await asyncio.sleep(1)
        except Exception:
            log.exception("The outcome of run %s could not be stored; interrupting the run.", lease.run_id)
            await interrupt_runs([(lease.run_id, lease.fence)], INTERRUPTED)
            return


async def _keep_late_text(live: LiveAnswer, forgotten_count: int) -> None:
    """Store text that was shown here but not yet stored when another process ended the run."""
    try:
        answer = live.partial
        is_kept = await retry_on_outage(keep_late_text)(
            answer=answer, forgotten_count=forgotten_count, now=clock.now()
        )
    except Exception:
        log.exception("The late text of run %s could not be stored.", live.lease.run_id)
        return
    unstored = len(answer.text) - answer.text_stored
    if is_kept:
        log.warning("%d late characters were added to run %s.", unstored, live.lease.run_id)
    elif unstored:
        log.warning("%d late characters of run %s were not kept.", unstored, live.lease.run_id)


async def _end_turn(run_id: str) -> None:
    try:
        await hooks.end_turn(UUID(run_id))
    except Exception:
        # The answer is already complete, and the next turn checks for due compactions again.
        log.exception("The hooks or the compaction after run %s failed.", run_id)


async def interrupt_runs(runs: list[tuple[UUID, int]], message: str) -> None:
    for run_id, fence in runs:
        await in_database(interrupt_run)(run_id=run_id, fence=fence, now=clock.now(), message=message)


def end_dead_runs(now: datetime) -> None:
    """End the runs whose process is gone."""
    for run_id, fence in dead_runs(now):
        # An expired lease of this process means that the database was away, not that the holder is gone.
        if is_answering(run_id) or extend_expired_lease_once(run_id=run_id, fence=fence, now=now):
            continue
        # Only if it is still expired: its holder may have renewed it since the list was read.
        interrupt_run(run_id=run_id, fence=fence, now=now, message=INTERRUPTED, only_expired=True)
