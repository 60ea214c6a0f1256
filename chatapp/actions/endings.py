"""The ends of runs: answered, stopped, failed or interrupted. Each run has exactly one, whatever happens to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import transaction

from agents import events
from chatapp import event_log, jobs, mapping, row_shapes
from chatapp.actions.conversations import updated_event
from chatapp.actions.injecting import release_injected
from chatapp.actions.messages import queue_run
from chatapp.actions.runs import Lease, PartialAnswer, lock_held, lock_run, plan_fact
from chatapp.actions.tool_calls import close_tool_calls
from chatapp.actions.usage import (
    CallUsage,
    record_calls,
    take_over_background_calls,
    totals_of_run,
    usage_event,
)
from chatapp.errors import NotFound
from chatapp.models import Conversation, Message, Run
from memory.tokens import estimate_parts


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, with everything it leaves behind."""

    status: str
    answer: PartialAnswer
    calls: Sequence[CallUsage] = ()
    error: events.RunError | None = None
    model_name: str = ""
    extra_facts: Sequence[events.Fact] = field(default=())


def finish_run(*, lease: Lease, outcome: Outcome, now: datetime) -> Run | None:
    """Answer, usage, status and the run's last events, together. The run that follows it, if one does: what the user
    sent meanwhile and no model call has seen is answered next. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        return _end(conversation, run, outcome, now)


def _end(conversation: Conversation, run: Run, outcome: Outcome, now: datetime) -> Run | None:
    """`conversation` is locked."""
    tools = close_tool_calls(conversation, run, now)
    record_calls(run, outcome.calls)
    take_over_background_calls(run)
    usage = totals_of_run(run)
    run.status = outcome.status
    run.finished_at = now
    run.lease_expires_at = None
    run.usage = usage.model_dump(mode="json", exclude_none=True)
    if outcome.error:
        run.error_category = outcome.error.category
        run.error_message = outcome.error.message
        run.error_detail = outcome.error.detail
    run.save()
    answer = Message.objects.get(pk=run.answer_id)
    answer.parts = mapping.parts_to_json(outcome.answer.parts)
    answer.token_estimate = estimate_parts(outcome.answer.parts)
    answer.status = outcome.status
    answer.usage = run.usage
    answer.save(update_fields=["parts", "token_estimate", "status", "usage"])
    conversation.last_activity_at = now
    conversation.save(update_fields=["last_activity_at"])
    last = _last_facts(conversation, run, answer, outcome, usage, now)
    event_log.append(conversation, *tools, *last, run=run)
    jobs.wake_worker("index_conversation", str(conversation.pk))
    waiting = release_injected(conversation, run, now)
    if waiting is None:
        return None
    return queue_run(conversation, branch=answer.branch, question=waiting, after=waiting, now=now)


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
        *outcome.extra_facts,
        *(
            [plan_fact(run, now)]
            if any(not step.is_over for step in mapping.plan_from_json(run.plan))
            else []
        ),
        *calls,
        updated_event(conversation, now),
        events.MessageCompleted(**of_run, message=row_shapes.message_shape(answer, run)),
        events.RunFinished(
            **of_run, status=cast(events.EndStatus, outcome.status), error=outcome.error, usage=usage
        ),
    ]


def request_stop(*, run: Run, now: datetime) -> None:
    """Ends a queued run at once; asks the holder of a running one. Raises NotFound when it was deleted meanwhile."""
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


def interrupt_run(*, run_id: UUID, fence: int, now: datetime, message: str = INTERRUPTED) -> bool:
    """Ends a run whose holder is gone, with the text that was stored. False when it was not so."""
    with transaction.atomic():
        found = lock_run(run_id)
        if found is None:
            return False
        conversation, run = found
        if run.status not in Run.ACTIVE or run.fence != fence:
            return False
        # A process that still believes it holds the lease can write nothing more after this.
        run.fence = fence + 1
        stored = _stored_answer(run)
        error = events.RunError(category="interrupted", message=message)
        _end(conversation, run, Outcome(Run.Status.INTERRUPTED, stored, error=error), now)
        return True


def _stored_answer(run: Run) -> PartialAnswer:
    parts: list[Mapping[str, Any]] = Message.objects.values_list("parts", flat=True).get(pk=run.answer_id)
    reasoning = "".join(part["text"] for part in parts if part["type"] == "reasoning")
    return PartialAnswer(Lease(run.pk, run.answer_id, run.fence), mapping.text_of(parts), reasoning)
