"""Implements `agents.ports` for the tools of one run, with the rights of the run's user and under its lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from django.conf import settings

from agents.ports import CallResult, Decision, RequestedCall
from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp.conversations.message_values import message_value
from chatapp.files.attachments import load_data_urls
from chatapp.files.object_store import failures
from chatapp.files.offloads import offloader
from chatapp.operations import clock
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import ReadForgotten, ServiceError
from chatapp.providers.usage import CallUsage
from chatapp.runs.actions.hooks import finish_hook_call, record_hook_call
from chatapp.runs.actions.injected_messages import take_injected
from chatapp.runs.actions.runs import Lease
from chatapp.runs.actions.tool_calls import (
    finish_tool_call,
    read_decision,
    record_tool_calls,
    start_tool_call,
)
from chatapp.runs.time_limit import waiting_for_user
from memory.types import ImagePart, Message, ToolResultPart, with_data_urls

log = logging.getLogger(__name__)

T = TypeVar("T")
DISCARDED = "It finished, but its result was discarded because something was forgotten meanwhile."
CONSENT_POLL_S = 1.0
"""For decisions stored by another process; one stored by this process is noticed at once."""

_waiting: dict[tuple[UUID, str], asyncio.Event] = {}


def notify_decision(run_id: UUID, call_id: str) -> None:
    """Wake the call that waits for this decision. Call it on the event loop."""
    waiting = _waiting.get((run_id, call_id))
    if waiting is not None:
        waiting.set()


@contextmanager
def _store_problems() -> Iterator[None]:
    """Raise problems of the store as ToolFailure, because they affect one result, not the run."""
    try:
        yield
    except ServiceError as error:
        raise ToolFailure(error.message) from None
    except failures() as error:
        log.exception("A result could not be stored.")
        raise ToolFailure("The store for large results is not responding.") from error


class ToolPorts:
    """All ports of one run. `unrecorded` is the run's own list of model calls not stored yet.

    `has_all`: the first request already contains everything sent during the run. `plan_step`: the calls belong to this
    step of a plan; they are recorded with its id and are not messages of the conversation.
    """

    def __init__(
        self,
        lease: Lease,
        caller: ToolCaller,
        unrecorded: list[CallUsage],
        *,
        has_all: bool = False,
        plan_step: str = "",
    ) -> None:
        self.lease = lease
        self.caller = caller
        self.unrecorded = unrecorded
        self.plan_step = plan_step
        self.offloads = offloader()
        self._taken: set[UUID] = set()
        self._has_all = has_all

    # --- CallRecords ---------------------------------------------------------------------------------

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        def write(spent: Sequence[CallUsage]) -> Awaitable[None]:
            return retry_on_outage(record_tool_calls)(
                lease=self.lease, calls=calls, spent=spent, now=clock.now(), plan_step=self.plan_step
            )

        await record_spent(self.unrecorded, write)

    async def record_running(self, call: RequestedCall) -> None:
        await _to_its_end(
            retry_on_outage(start_tool_call)(lease=self.lease, call_id=call.call_id, now=clock.now())
        )

    async def record_result(self, result: CallResult) -> None:
        self._has_all = await _to_its_end(
            retry_on_outage(finish_tool_call)(lease=self.lease, result=result, now=clock.now())
        )

    # --- Consents ------------------------------------------------------------------------------------

    async def ask(self, call: RequestedCall) -> Decision:
        key = (self.lease.run_id, call.call_id)
        # Register before the first read, or a decision between that and the wait would be missed.
        told = _waiting[key] = asyncio.Event()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.CONSENT_TIMEOUT_S
        try:
            with waiting_for_user():
                while True:
                    is_too_late = loop.time() >= deadline
                    decision = await retry_on_outage(read_decision)(
                        lease=self.lease, call_id=call.call_id, is_too_late=is_too_late, now=clock.now()
                    )
                    if decision is not None:
                        return decision
                    await _wait(told, min(CONSENT_POLL_S, max(0.0, deadline - loop.time())))
        finally:
            _waiting.pop(key, None)

    # --- Inbox ---------------------------------------------------------------------------------------

    async def take(self) -> Sequence[Message]:
        if self._has_all:  # as of the question or result that was recorded just now
            self._has_all = False
            return ()
        rows = await _to_its_end(
            # Select by what the run knows, not by what was moved, so that a retry after the commit returns the same.
            retry_on_outage(take_injected)(lease=self.lease, known=self._taken, now=clock.now())
        )
        self._taken |= {row.pk for row in rows}
        messages = [message_value(row) for row in rows]
        image_ids = [
            part.file_id for message in messages for part in message.parts if isinstance(part, ImagePart)
        ]
        urls = await load_data_urls(UUID(self.caller.user_id), image_ids) if image_ids else {}
        return [with_data_urls(message, urls) for message in messages]

    # --- ResultStore ---------------------------------------------------------------------------------

    async def keep_text(self, part: ToolResultPart) -> str:
        with _store_problems():
            return await retry_on_outage(self.offloads.offload_tool_result)(self.caller.conversation_id, part)

    async def keep_image(self, image: ToolImage, tool_name: str) -> str:
        with _store_problems():
            return await retry_on_outage(self.offloads.offload_image)(
                self.caller.conversation_id, image.data, tool_name
            )


class HookPorts(ToolPorts):
    """The ports of one hook. Its calls are recorded with its id and are not messages of the conversation."""

    def __init__(
        self, lease: Lease, caller: ToolCaller, hook_id: str, forgotten_count: int | None = None
    ) -> None:
        # A hook calls no model, so it spends nothing.
        super().__init__(lease, caller, [])
        self.hook_id = hook_id
        self.forgotten_count = forgotten_count

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        for call in calls:
            await _to_its_end(
                retry_on_outage(record_hook_call)(
                    lease=self.lease,
                    hook_id=self.hook_id,
                    requested=call,
                    now=clock.now(),
                    forgotten_count=self.forgotten_count,
                )
            )

    async def record_result(self, result: CallResult) -> None:
        await _to_its_end(retry_on_outage(self._finish)(result))

    def _finish(self, result: CallResult) -> None:
        """Store the result, or discard it if something was forgotten meanwhile. Raise LeaseLost, ReadForgotten."""
        try:
            finish_hook_call(
                lease=self.lease, result=result, now=clock.now(), forgotten_count=self.forgotten_count
            )
        except ReadForgotten:
            if result.part.offload_ref:
                # No result refers to it, so nothing else would delete it.
                self.offloads.discard(self.caller.conversation_id, [result.part.offload_ref])
            part = ToolResultPart(result.call.call_id, result.call.name, DISCARDED, is_error=True)
            finish_hook_call(
                lease=self.lease, result=CallResult(result.call, result.state, part), now=clock.now()
            )
            raise


async def _wait(told: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await told.wait()
    except TimeoutError:
        pass


async def record_spent(
    unrecorded: list[CallUsage], write: Callable[[Sequence[CallUsage]], Awaitable[None]]
) -> None:
    """Take all model calls off the list and store them. Put them back for the next write if that fails."""
    spent = list(unrecorded)
    # Clear it in place and before awaiting: the steps of a plan share the list and write concurrently.
    unrecorded.clear()
    writing = asyncio.ensure_future(write(spent))
    try:
        await _to_its_end(writing)
    finally:
        if writing.done() and (writing.cancelled() or writing.exception() is not None):
            unrecorded[:0] = spent


async def _to_its_end(write: Awaitable[T]) -> T:
    """Await a write to its end, even if the caller is cancelled."""
    # The thread continues anyway, and the end of the run must see its writes.
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
