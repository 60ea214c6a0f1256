"""Ends runs: answered, stopped, failed or interrupted. Each run ends exactly once, whatever happens to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.db import transaction

from agents import events
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.messages import with_stored_pieces
from chatapp.operations.caching.editions import Edition, configuration_edition, one_edition
from chatapp.operations.database.statements import execute, update_row
from chatapp.operations.errors import NotFound, ReadForgotten
from chatapp.operations.workers import jobs
from chatapp.providers.actions import assign_background_calls, record_calls
from chatapp.providers.selectors import totals_of, totals_of_run, unrecorded_calls
from chatapp.providers.usage import CallUsage, usage_event
from chatapp.realtime import event_log
from chatapp.recall.actions.indexing import reindex_messages
from chatapp.runs import shapes
from chatapp.runs.actions.runs import (
    Lease,
    PartialAnswer,
    check_nothing_forgotten,
    lock_leased,
    lock_run,
    plan_fact,
)
from chatapp.runs.actions.sending import queue_run
from chatapp.runs.actions.tool_calls import close_tool_calls
from chatapp.runs.actions.unseen_messages import release_injected
from chatapp.runs.models import Run
from memory.tokens import estimate_parts


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, with everything it leaves behind."""

    status: str
    answer: PartialAnswer
    calls: Sequence[CallUsage] = ()
    error: events.RunError | None = None
    facts: Sequence[events.Fact] = ()
    """Further events of the run, sent with its end."""

    @property
    def answer_status(self) -> str:
        """Return the status of the answer's message: cut if the run is complete but its answer ended at a limit."""
        is_cut = self.status == Run.Status.COMPLETE and self.error is not None
        return Message.Status.CUT if is_cut else self.status


def finish_run(*, lease: Lease, outcome: Outcome, now: datetime) -> Run | None:
    """Store answer, usage, status and the run's last events together. Return the run that follows, if any.

    Messages sent meanwhile that no model call has seen are answered next, or held if the user stopped the answer. Raise
    LeaseLost.
    """
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        return _end(conversation, run, outcome, now)


_LEFT = """
SELECT
    EXISTS (SELECT 1 FROM chatapp_toolcall WHERE run_id = run.id
        AND (NOT is_told OR state IN ('requested', 'waiting', 'running'))),
    EXISTS (SELECT 1 FROM chatapp_usage WHERE run_id = run.id),
    EXISTS (SELECT 1 FROM chatapp_usage WHERE conversation_id = run.conversation_id AND run_id IS NULL),
    EXISTS (SELECT 1 FROM chatapp_answerpiece WHERE message_id = run.answer_id),
    (SELECT count(*) FROM chatapp_runstep WHERE run_id = run.id),
    {edition}
FROM chatapp_run AS run WHERE id = %s
"""


@cache
def _left_statement() -> str:
    return _LEFT.format(edition=configuration_edition())


class _Left(NamedTuple):
    """Rows that a run may leave behind, but mostly does not."""

    has_tool_calls: bool
    has_usage: bool
    has_background_usage: bool
    has_pieces: bool
    step_count: int
    edition: str | None


def _end(conversation: Conversation, run: Run, outcome: Outcome, now: datetime) -> Run | None:
    """End a run whose conversation is locked. Return the run that follows, if any."""
    left = _Left._make(execute(_left_statement(), run.pk).fetchone())
    tools = close_tool_calls(conversation, run, now) if left.has_tool_calls else []
    # Reload it: messages of the closed calls took its position, and `run.answer` still has the old one.
    answer = Message.objects.get(pk=run.answer_id) if tools else run.answer
    usage = _record_usage(run, outcome.calls, left)
    _store_end(run, answer, outcome, usage, now)
    if left.has_pieces:
        execute("DELETE FROM chatapp_answerpiece WHERE message_id = %s", answer.pk)
    conversation.last_activity_at = now
    with one_edition(Edition(left.edition)):
        last = _last_facts(conversation, run, answer, outcome, usage, now)
        event_log.append(conversation, *tools, *last, run=run, changed=["last_activity_at"])
    jobs.wake_for_many("chatapp.recall.tasks.index_conversations", str(conversation.pk))
    # Hold waiting messages after a Stop, so that their user decides about them. A Stop counts even if it came too late
    # to end the answer, or if the process died before obeying it.
    was_stopped = outcome.status == Run.Status.STOPPED or run.stop_requested
    if answer.position >= conversation.next_position - 1 or was_stopped:
        return None
    waiting = release_injected(conversation, run, now)
    if waiting is None:
        return None
    return queue_run(conversation, branch=answer.branch, question=waiting, after=waiting, now=now)


def _record_usage(run: Run, calls: Sequence[CallUsage], left: _Left) -> events.UsageTotals:
    # Some are already stored if the reply to an earlier commit was lost and the run ends because of that.
    record_calls(run, unrecorded_calls(calls) if left.has_usage else calls, left.step_count)
    if left.has_background_usage:
        assign_background_calls(run)
    # Calls of earlier steps and of the background are only in the database.
    if left.has_usage or left.has_background_usage:
        return totals_of_run(run)
    return totals_of(calls)


def _store_end(run: Run, answer: Message, outcome: Outcome, usage: events.UsageTotals, now: datetime) -> None:
    run.status, run.finished_at, run.lease_expires_at = outcome.status, now, None
    run.usage = usage.model_dump(mode="json", exclude_none=True)
    if outcome.error:
        run.error_category = outcome.error.category
        run.error_message = outcome.error.message
        run.error_detail = outcome.error.detail
    errors = ("error_category", "error_message", "error_detail")
    # Include the fence, which `stop_answers` raised only in memory.
    update_row(run, "status", "fence", "finished_at", "lease_expires_at", "usage", *errors)
    answer.parts = message_values.parts_to_json(outcome.answer.parts)
    answer.token_estimate = estimate_parts(outcome.answer.parts)
    answer.status = outcome.answer_status
    answer.usage = run.usage
    update_row(answer, "parts", "token_estimate", "status", "usage")


def _last_facts(
    conversation: Conversation,
    run: Run,
    answer: Message,
    outcome: Outcome,
    usage: events.UsageTotals,
    now: datetime,
) -> list[events.Fact]:
    where: dict[str, Any] = {"conversation_id": str(conversation.pk), "at": now}
    of_run = {**where, "run_id": str(run.pk)}
    calls = [usage_event(run, call, now) for call in outcome.calls]
    return [
        # Unfinished steps show as skipped from now on.
        *([plan_fact(run, now)] if any(not step.is_over for step in shapes.plan_from_json(run.plan)) else []),
        *outcome.facts,
        *calls,
        updated_event(conversation, now, is_quiet=True),
        events.MessageCompleted(**of_run, message=message_shape(answer, run)),
        # It must be last: readers of the run's stream disconnect on it.
        events.RunFinished(
            **of_run, status=cast(events.EndStatus, outcome.status), error=outcome.error, usage=usage
        ),
    ]


def request_stop(*, run: Run, now: datetime) -> None:
    """End a queued run at once, or ask the holder of a running one to end it. Raise NotFound if it was deleted."""
    with transaction.atomic():
        found = lock_run(run.pk)
        if found is None:
            raise NotFound
        conversation, run = found
        if run.status == Run.Status.QUEUED:
            nothing = PartialAnswer(Lease(run.pk, run.answer_id, run.fence), "")
            _end(conversation, run, Outcome(Run.Status.STOPPED, nothing), now)
        elif run.status == Run.Status.RUNNING:
            Run.objects.filter(pk=run.pk).update(stop_requested=True)


INTERRUPTED = "The answer was interrupted; what was written so far is kept. You can continue it or try again."
NOT_STARTED = "No process was free to answer. Your message is stored; please try again."


def interrupt_run(
    *, run_id: UUID, fence: int, now: datetime, message: str = INTERRUPTED, only_expired: bool = False
) -> bool:
    """End a run whose holder is gone, with the stored text, and return whether this call ended it.

    `only_expired`: do nothing if its lease was renewed meanwhile.
    """
    with transaction.atomic():
        found = lock_run(run_id)
        if found is None:
            return False
        conversation, run = found
        held = Run.objects.filter(pk=run_id, fence=fence, status__in=Run.ACTIVE)
        if only_expired:
            held = held.filter(Run.is_out_of_lease(now))
        # Raising the fence locks out a process that still believes in its lease, so what is read next is final.
        if not held.update(fence=fence + 1):
            return False
        run.fence = fence + 1
        error = events.RunError(category="interrupted", message=message)
        _end(conversation, run, Outcome(Run.Status.INTERRUPTED, _stored_answer(run), error=error), now)
        return True


def stop_answers(*, conversation: Conversation, now: datetime) -> list[UUID]:
    """Stop the active runs with the stored text and return their ids. `conversation` must be locked.

    Unlike after `interrupt_run`, no run follows: messages sent meanwhile are held.
    """
    stopped = list(Run.active().filter(conversation=conversation).values_list("pk", flat=True))
    for run_id in stopped:
        found = lock_run(run_id)
        assert found is not None
        _, run = found
        run.fence += 1  # its process can write nothing more
        _end(conversation, run, Outcome(Run.Status.STOPPED, _stored_answer(run)), now)
    return stopped


def _stored_answer(run: Run) -> PartialAnswer:
    [answer] = with_stored_pieces([run.answer])
    text, reasoning = message_values.text_of(answer.parts), message_values.reasoning_of(answer.parts)
    return PartialAnswer(Lease(run.pk, run.answer_id, run.fence), text, reasoning)


def keep_late_text(*, answer: PartialAnswer, forgotten_count: int, now: datetime) -> bool:
    """Add to an interrupted answer the text that its process showed but had not stored when another process ended the
    run. Return False if it may not be added.

    The run stays ended and nothing is overwritten: the stored text must be a prefix of the late one. The late text is
    refused if something was forgotten since `forgotten_count` was read, if the stored answer was continued, or if the
    run did not end because of its lease.
    """
    with transaction.atomic():
        try:
            check_nothing_forgotten(answer.lease.run_id, forgotten_count)
        except ReadForgotten:
            return False
        found = lock_run(answer.lease.run_id)
        if found is None:
            return False
        conversation, run = found
        row = run.answer
        if not _was_reaped(run, answer.lease) or not _goes_on(row, answer):
            return False
        row.parts = message_values.parts_to_json(answer.parts)
        row.token_estimate = estimate_parts(answer.parts)
        row.save(update_fields=["parts", "token_estimate"])
        # The shorter text may already be in the index.
        reindex_messages(row.user_id, [row])
        shape = message_shape(row, run)
        # Not an event of the run, which has already had its last one.
        event_log.append(
            conversation, events.MessageCompleted(conversation_id=str(conversation.pk), at=now, message=shape)
        )
        jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))
        return True


def _was_reaped(run: Run, lease: Lease) -> bool:
    return (
        run.status == Run.Status.INTERRUPTED
        and run.fence == lease.fence + 1
        and run.is_last_term
        and not Run.objects.filter(continues=run.answer_id).exists()
    )


def _goes_on(row: Message, answer: PartialAnswer) -> bool:
    """Return whether the answer extends the stored text."""
    text, reasoning = message_values.text_of(row.parts), message_values.reasoning_of(row.parts)
    begins_so = answer.text.startswith(text) and answer.reasoning.startswith(reasoning)
    return begins_so and (answer.text, answer.reasoning) != (text, reasoning) and row.forgotten_at is None
