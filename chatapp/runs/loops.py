"""The periodic work of a web process for its runs: store partial answers, renew leases, obey stops, take over runs of
dead processes, and drain on shutdown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from uuid import UUID

from django.conf import settings

from chatapp.accounts.budgets.actions import release_all as release_all_holds
from chatapp.compaction.actions.compactions import release_all_compactions
from chatapp.long_term.actions.consolidations import release_all_consolidations
from chatapp.operations import clock
from chatapp.operations.database.threads import OUTAGE_ERRORS, first_in_writer, in_database, in_writer
from chatapp.providers.calibration import STORE_EVERY_S, store_token_counts
from chatapp.realtime.hub import hub
from chatapp.runs.actions.endings import INTERRUPTED, NOT_STARTED
from chatapp.runs.actions.runs import checkpoint_answers, renew_leases, stops_requested
from chatapp.runs.runner import cancel, end_dead_runs, interrupt_runs, process, start, stop_here, tell_all
from chatapp.runs.selectors import GIVE_UP_AFTER, abandoned_runs, orphaned_runs, unfinished_runs
from chatapp.runs.streaming import CHECKPOINT_S, LiveAnswer

log = logging.getLogger(__name__)

ADOPT_S = 3.0
RETRY_S = 1.0
# A drain ends even if the database does not respond.
LAST_WRITE_S = 5.0


async def start_loops() -> None:
    """Start the periodic work of this process. Call it after `hub.start`.

    In embedded mode no other process can hold a run, so unfinished runs belong to a previous process and are
    interrupted.
    """
    process.is_draining = False
    process.up_since = time.monotonic()
    # Set here because the hub cannot import the runner, which imports the hub.
    hub.on_stop = stop_here
    hub.on_sync = tell_all
    if settings.EMBEDDED:
        await interrupt_runs(await in_database(unfinished_runs)(), INTERRUPTED)
        await in_database(release_all_holds)()
        # Release them at once instead of waiting for their leases to expire.
        await in_database(release_all_compactions)(now=clock.now())
        await in_database(release_all_consolidations)(now=clock.now())
    loop = asyncio.get_running_loop()
    process.loops = [
        loop.create_task(_repeat(CHECKPOINT_S, _store_partial_answers)),
        loop.create_task(_repeat(1.0, _obey_stops)),
        loop.create_task(_repeat(settings.HEARTBEAT_S, _renew)),
        loop.create_task(_repeat(ADOPT_S, adopt_and_reap)),
        loop.create_task(_repeat(STORE_EVERY_S, in_writer(store_token_counts))),
    ]


async def _repeat(interval_s: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
            await asyncio.sleep(interval_s)
        except Exception:
            log.exception("A loop of the runner failed; trying again.")
            # Leases expire meanwhile, so retry soon.
            await asyncio.sleep(min(interval_s, RETRY_S))


async def _store_partial_answers() -> None:
    waiting = [live for live in process.by_message.values() if not live.is_stored]
    if not waiting:
        return
    try:
        await _store(waiting)
    except OUTAGE_ERRORS:
        # Stored one by one, they would fail, too. The loop retries soon.
        raise
    except Exception:
        # One text that the database rejects must not keep the others from being stored.
        log.exception("Partial answers could not be stored together; storing each one separately.")
        await asyncio.gather(*(_store([live]) for live in waiting), return_exceptions=True)


async def _store(answers: list[LiveAnswer]) -> None:
    # Take a snapshot: the answers grow while they are being stored.
    partials = [live.partial for live in answers]
    # Overtake other writes: text that was shown must be in the database a second later.
    stored = await first_in_writer(checkpoint_answers)(answers=partials)
    for live, partial in zip(answers, partials, strict=True):
        if live.lease.run_id in stored:
            live.note_stored(partial)


async def _obey_stops() -> None:
    # A stop is also sent to the process directly. Reading the row catches messages that were lost.
    if process.works:
        for run_id in await in_database(stops_requested)(run_ids=[UUID(key) for key in process.works]):
            stop_here(str(run_id))


async def _renew() -> None:
    leases = [work.live.lease for work in process.works.values() if work.live]
    if not leases:
        return
    # Overtake other writes: a process whose lease is renewed too late is considered dead.
    for run_id in await first_in_writer(renew_leases)(leases=leases, now=clock.now()):
        work = process.works.get(str(run_id))
        if work is not None:
            cancel(work)


async def adopt_and_reap() -> None:
    """Start runs that no process has begun, and end those whose process is gone or that no process took."""
    try:
        await _adopt_and_reap()
    except OUTAGE_ERRORS:
        # Queued runs were waiting for the database, not for a free process.
        process.up_since = time.monotonic()
        raise


async def _adopt_and_reap() -> None:
    now = clock.now()
    await in_database(end_dead_runs)(now)
    for run_id in await in_database(orphaned_runs)(now):
        start(str(run_id))
    # Runs accepted before a restart or an outage are already that old; they must get a chance to be adopted first.
    if time.monotonic() - process.up_since > GIVE_UP_AFTER.total_seconds():
        await interrupt_runs(await in_database(abandoned_runs)(now), NOT_STARTED)


async def drain(timeout_s: float) -> None:
    """Start no more runs, let answers finish within the time, interrupt the others with their text so far, and end the
    loops."""
    process.is_draining = True
    deadline = time.monotonic() + timeout_s
    while (
        process.works and (left_s := deadline - time.monotonic()) > 0
    ):  # a run accepted earlier may still begin
        await asyncio.wait([work.task for work in process.works.values()], timeout=left_s)
        await asyncio.sleep(0)  # a finished task removes itself from `works`
    works = list(process.works.values())
    if works:
        for work in works:
            cancel(work)
        await asyncio.wait([work.task for work in works], timeout=LAST_WRITE_S)
    # End the loops last: until the last answer has ended, they renew its lease and store its text.
    for loop_task in process.loops:
        loop_task.cancel()
    await asyncio.gather(*process.loops, return_exceptions=True)
    process.loops = []
    try:
        await in_writer(store_token_counts)()
    except OUTAGE_ERRORS:
        log.warning("The latest token calibration could not be stored.", exc_info=True)
