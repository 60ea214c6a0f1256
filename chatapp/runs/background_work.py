"""Work in parallel to an answer. The answer does not wait for it, but the end of its run does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence

from agents.events import Fact
from chatapp.operations import clock
from chatapp.operations.database.threads import Once, in_writer, retry_on_outage
from chatapp.operations.errors import LeaseLost
from chatapp.runs.actions.requests import (
    NewRequest,
    WrittenRequest,
    first_request_is_recorded,
    record_first_request,
    request_is_stored,
    store_request,
    write_request,
)
from chatapp.runs.actions.runs import Lease, facts_are_recorded, record_facts
from chatapp.runs.models import RunSource

log = logging.getLogger(__name__)


LONG_TOKENS = 8_000
"""For longer requests, finding the stored texts that they repeat is done before they queue for the database, because
SQLite's only writer works sequentially. For shorter ones, another thread switch would cost more."""


async def store_in_background(lease: Lease, request: NewRequest) -> None:
    """Store a request of a run. Raise LeaseLost."""
    await retry_on_outage(Once(store_request, request_is_stored), in_writer)(
        lease=lease, request=await _write_long(lease, request), now=clock.now()
    )


async def _write_long(lease: Lease, request: NewRequest) -> NewRequest | WrittenRequest:
    if request.tokens < LONG_TOKENS:
        return request
    return await retry_on_outage(write_request)(lease=lease, request=request)


class BackgroundWork:
    """The background tasks of one run. Facts are stored in the order of the `tell` calls."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._tasks: list[asyncio.Task[None]] = []
        self._in_turn = asyncio.Lock()

    def begin(self, work: Awaitable[object]) -> None:
        async def run() -> None:
            try:
                await work
            except LeaseLost as lost:
                log.info("Background work of run %s was discarded: %s", self.lease.run_id, lost)
            except Exception:
                # The answer continues without it, and a later turn does it again.
                log.exception("Background work of run %s failed.", self.lease.run_id)

        self._tasks.append(asyncio.get_running_loop().create_task(run()))

    def tell(self, *facts: Fact) -> None:
        self.begin(self._record_facts(facts))

    async def _record_facts(self, facts: Sequence[Fact]) -> None:
        async with self._in_turn:
            await retry_on_outage(Once(record_facts, facts_are_recorded), in_writer)(
                lease=self.lease, facts=facts
            )

    async def record_first_request(
        self, request: NewRequest | None, facts: Sequence[Fact], recalled: Sequence[RunSource]
    ) -> None:
        """Store what the first request consists of, and the request itself if there is one."""
        async with self._in_turn:
            written = await _write_long(self.lease, request) if request else None
            await retry_on_outage(Once(record_first_request, first_request_is_recorded), in_writer)(
                lease=self.lease, request=written, facts=facts, recalled=recalled, now=clock.now()
            )

    async def settle(self) -> None:
        if self._tasks:
            # `gather` would cancel the writes, too, if the run is cancelled meanwhile.
            await asyncio.wait(self._tasks)
