"""The life of a run. Every write names the fencing number of its lease; an old one changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F

from agents import events
from agents.plan.steps import PlanStep
from chatapp import event_log, jobs, mapping
from chatapp.actions.conversations import updated_event
from chatapp.actions.usage import CallUsage, record_calls, totals_of_run
from chatapp.errors import LeaseLost, NotFound
from chatapp.models import Conversation, Message, Run
from memory.tokens import estimate_parts
from memory.types import Part, ReasoningPart, TextPart


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run's answer, until it expires or somebody with a higher `fence` comes."""

    run_id: UUID
    answer_id: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    lease: Lease
    text: str
    reasoning: str = ""

    @property
    def parts(self) -> tuple[Part, ...]:
        reasoning: tuple[Part, ...] = (ReasoningPart(self.reasoning),) if self.reasoning else ()
        return (*reasoning, TextPart(self.text)) if self.text else reasoning


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, with everything it leaves behind."""

    status: str
    answer: PartialAnswer
    calls: Sequence[CallUsage] = ()
    error: events.RunError | None = None
    model_name: str = ""
    extra_facts: Sequence[events.Fact] = field(default=())


def claim_run(
    *, run_id: UUID, holder: str, model_name: str, now: datetime, mode: str = "react"
) -> Lease | None:
    """None when somebody else was faster or the run has ended."""
    with transaction.atomic():
        found = _lock_run(run_id)
        if found is None:
            return None
        conversation, run = found
        claimed = Run.objects.filter(pk=run_id, status=Run.Status.QUEUED).update(
            status=Run.Status.RUNNING,
            holder=holder,
            fence=F("fence") + 1,
            lease_expires_at=now + timedelta(seconds=settings.LEASE_S),
            started_at=now,
            mode=mode,
        )
        if not claimed:
            return None
        run.refresh_from_db(fields=["fence", "status", "mode"])
        Message.objects.filter(pk=run.answer_id).update(model_name=model_name)
        started = events.RunStarted(
            conversation_id=str(conversation.pk),
            run_id=str(run.pk),
            at=now,
            message_id=str(run.answer_id),
            parent=str(run.answer.parent_id) if run.answer.parent_id else None,
            model=model_name,
            mode=run.mode,
        )
        event_log.append(conversation, started, run=run)
        return Lease(run.pk, run.answer_id, run.fence)


def _lock_run(run_id: UUID) -> tuple[Conversation, Run] | None:
    """The run, under its conversation's lock; None when it was deleted."""
    conversation_id = Run.objects.filter(pk=run_id).values_list("conversation_id", flat=True).first()
    if conversation_id is None:
        return None
    conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    run = Run.objects.filter(pk=run_id).first() if conversation else None
    return (conversation, run) if conversation and run else None


def lock_held(lease: Lease) -> tuple[Conversation, Run]:
    """What every write of a run begins with, in its transaction. Raises LeaseLost."""
    found = _lock_run(lease.run_id)
    if found is None:
        raise LeaseLost("The conversation was deleted.")
    if not _held(lease).exists():
        raise LeaseLost("Another process took this run over.")
    return found


def _held(lease: Lease) -> Any:
    return Run.objects.filter(pk=lease.run_id, fence=lease.fence, status=Run.Status.RUNNING)


def renew_leases(*, leases: Iterable[Lease], now: datetime) -> set[UUID]:
    """The runs that are no longer ours."""
    lost = set()
    with transaction.atomic():
        for lease in leases:
            expires = now + timedelta(seconds=settings.LEASE_S)
            if not _held(lease).update(lease_expires_at=expires):
                lost.add(lease.run_id)
    return lost


def checkpoint_answers(*, answers: Iterable[PartialAnswer]) -> None:
    """Partial texts of all runs of a process, in one transaction. One that lost its lease is passed over."""
    with transaction.atomic():
        for answer in answers:
            Message.objects.filter(
                pk=answer.lease.answer_id,
                status=Message.Status.STREAMING,
                run__fence=answer.lease.fence,
                run__status=Run.Status.RUNNING,
            ).update(parts=mapping.parts_to_json(answer.parts))


def record_facts(*, lease: Lease, facts: Sequence[events.Fact]) -> None:
    """What a run tells on its way. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        event_log.append(conversation, *facts, run=run)


def record_plan(*, lease: Lease, steps: Sequence[PlanStep], now: datetime) -> None:
    """How far the plan of a run is, for its readers and for whoever continues it. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        run.plan = mapping.plan_to_json(steps)
        run.save(update_fields=["plan"])
        event_log.append(conversation, _plan_fact(run, now), run=run)


def _plan_fact(run: Run, now: datetime) -> events.Plan:
    steps = [events.PlannedStep(**step) for step in mapping.plan_shape(run) or ()]
    return events.Plan(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk),
        at=now,
        round=max((step.round for step in steps), default=1),
        steps=steps,
    )


def finish_run(*, lease: Lease, outcome: Outcome, now: datetime) -> None:
    """Answer, usage, status and the run's last events, together. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        _end(conversation, run, outcome, now)


def _end(conversation: Conversation, run: Run, outcome: Outcome, now: datetime) -> None:
    """`conversation` is locked."""
    record_calls(run, outcome.calls)
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
    event_log.append(conversation, *_last_facts(conversation, run, answer, outcome, usage, now), run=run)
    jobs.wake_worker("index_conversation", str(conversation.pk))


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
    calls = [events.Usage(**of_run, **call.as_event()) for call in outcome.calls]
    return [
        *outcome.extra_facts,
        *(
            [_plan_fact(run, now)]
            if any(not step.is_over for step in mapping.plan_from_json(run.plan))
            else []
        ),
        *calls,
        updated_event(conversation, now),
        events.MessageCompleted(**of_run, message=mapping.message_shape(answer, run)),
        events.RunFinished(
            **of_run, status=cast(events.EndStatus, outcome.status), error=outcome.error, usage=usage
        ),
    ]


def request_stop(*, run: Run, now: datetime) -> None:
    """Ends a queued run at once; asks the holder of a running one. Raises NotFound when it was deleted meanwhile."""
    with transaction.atomic():
        found = _lock_run(run.pk)
        if found is None:
            raise NotFound
        conversation, run = found
        if run.status == Run.Status.QUEUED:
            nothing = PartialAnswer(Lease(run.pk, run.answer_id, run.fence), "")
            _end(conversation, run, Outcome(Run.Status.STOPPED, nothing), now)
        elif run.status == Run.Status.RUNNING:
            Run.objects.filter(pk=run.pk).update(stop_requested=True)


def stops_requested(*, run_ids: Iterable[UUID]) -> set[UUID]:
    return set(Run.objects.filter(pk__in=list(run_ids), stop_requested=True).values_list("pk", flat=True))


INTERRUPTED = "The answer was interrupted; what was written so far is kept. You can continue it or try again."
NOT_STARTED = "No process was free to answer. Your message is stored; please try again."


def interrupt_run(*, run_id: UUID, fence: int, now: datetime, message: str = INTERRUPTED) -> bool:
    """Ends a run whose holder is gone, with the text that was stored. False when it was not so."""
    with transaction.atomic():
        found = _lock_run(run_id)
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
