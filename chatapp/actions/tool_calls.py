"""The life of a tool call. It is recorded before it runs, its result before the model sees it; each change is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from django.db import transaction

from agents import events
from agents.ports import CallResult, Decision, RequestedCall
from chatapp import event_log, mapping, row_shapes
from chatapp.actions.places import Belonging, insert_before_answer
from chatapp.actions.runs import Lease, lock_held
from chatapp.actions.usage import CallUsage, record_calls, usage_event
from chatapp.errors import Conflict, NotFound
from chatapp.models import Conversation, Message, Run, RunStep, ToolCall, User
from chatapp.selectors.access import accessible_run, lock_conversation
from memory.turns import INTERRUPTED
from memory.types import Message as MessageValue
from memory.types import ToolCallPart, ToolResultPart

NOT_RUN = "This call was not run: the answer ended before."
UNFINISHED = "Interrupted before it was finished; it can be called again."


def record_tool_calls(
    *,
    lease: Lease,
    asking: MessageValue,
    calls: Sequence[RequestedCall],
    spent: Sequence[CallUsage],
    now: datetime,
    plan_step: str = "",
) -> None:
    """All calls of a step with the message that asks for them, and what the model call cost; said twice, they are
    recorded once. Raises LeaseLost.

    Those of a plan's step stay between it and its tools: they are no messages of the conversation.
    """
    with transaction.atomic():
        conversation, run = lock_held(lease)
        if ToolCall.objects.filter(run=run, call_id__in=[call.call_id for call in calls]).exists():
            return
        record_calls(run, spent)
        message = None if plan_step else _insert_asking(conversation, run, asking, now)
        first, step = ToolCall.objects.filter(run=run).count(), _last_step(run, plan_step)
        rows = [
            ToolCall(
                run=run,
                message=message,
                step=step,
                plan_step=plan_step,
                is_told=bool(plan_step),
                ordinal=first + place,
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
                state=call.state,
                is_idempotent=call.is_idempotent,
                has_begun=call.state == "running",
                requested_at=now,
                started_at=now if call.state == "running" else None,
            )
            for place, call in enumerate(calls)
        ]
        ToolCall.objects.bulk_create(rows)
        usage = [usage_event(run, call, now) for call in spent]
        event_log.append(conversation, *usage, *(call_event(run, row, now) for row in rows), run=run)


def _insert_asking(conversation: Conversation, run: Run, asking: MessageValue, now: datetime) -> Message:
    """What was said around the calls is part of the answer, where it was shown."""
    parts = mapping.parts_to_json(part for part in asking.parts if isinstance(part, ToolCallPart))
    [message] = insert_before_answer(conversation, run, [Belonging(Message.Role.ASSISTANT, parts)], now)
    return message


def _last_step(run: Run, plan_step: str) -> int:
    """The number of the model call that asks."""
    last = RunStep.objects.filter(run=run, plan_step=plan_step).order_by("-n")
    return last.values_list("n", flat=True).first() or 0


def start_tool_call(*, lease: Lease, call_id: str, now: datetime) -> None:
    """It was approved. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        call = ToolCall.objects.get(run=run, call_id=call_id)
        call.state, call.started_at, call.has_begun = ToolCall.State.RUNNING, now, True
        call.save(update_fields=["state", "started_at", "has_begun"])
        event_log.append(conversation, call_event(run, call, now), run=run)


def finish_tool_call(*, lease: Lease, result: CallResult, now: datetime) -> None:
    """Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        call = ToolCall.objects.get(run=run, call_id=result.call.call_id)
        write_result(call, result.state, result.part, now, is_cut=result.is_cut)
        event_log.append(conversation, call_event(run, call, now), run=run)


def write_result(
    call: ToolCall, state: str, part: ToolResultPart, now: datetime, *, is_cut: bool = False
) -> None:
    """`call` is of a run whose conversation is locked."""
    call.state = state
    call.result = mapping.parts_to_json([part])
    call.is_cut = is_cut
    call.finished_at = now
    call.save(update_fields=["state", "result", "is_cut", "finished_at"])


def tell_results(*, lease: Lease, now: datetime) -> None:
    """The results of finished calls as messages, in the order of the calls. Raises LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_held(lease)
        _tell_results(conversation, run, now)


def _tell_results(conversation: Conversation, run: Run, now: datetime) -> None:
    untold = (
        ToolCall.objects.filter(run=run, is_told=False).exclude(state__in=ToolCall.OPEN).order_by("ordinal")
    )
    results = [Belonging(Message.Role.TOOL, call.result) for call in untold]
    if results:
        insert_before_answer(conversation, run, results, now)
        ToolCall.objects.filter(run=run, is_told=False).exclude(state__in=ToolCall.OPEN).update(is_told=True)


def close_tool_calls(conversation: Conversation, run: Run, now: datetime) -> list[events.Tool]:
    """At a run's end: what is still open is interrupted, and each call has its result. `conversation` is locked."""
    told = []
    for call in ToolCall.objects.filter(run=run, state__in=ToolCall.OPEN).order_by("ordinal"):
        interrupt_call(call, now)
        told.append(call_event(run, call, now))
    _tell_results(conversation, run, now)
    return told


def interrupt_call(call: ToolCall, now: datetime) -> None:
    """`call` is open, and its run's conversation is locked."""
    text = NOT_RUN if not call.has_begun else UNFINISHED if call.is_idempotent else INTERRUPTED
    part = ToolResultPart(call.call_id, call.name, text, is_error=True)
    write_result(call, ToolCall.State.INTERRUPTED, part, now)


# --- Consent ---------------------------------------------------------------------------------------------


def decide_tool_call(*, user: User, run_id: str, call_id: str, approve: bool) -> ToolCall:
    """What the user says to a call that waits. Raises NotFound; Conflict when it does not wait any more."""
    decision = "approved" if approve else "denied"
    with transaction.atomic():
        run = accessible_run(user, run_id)
        lock_conversation(user, run.conversation_id)
        call = ToolCall.objects.filter(run=run, call_id=call_id).select_related("run").first()
        if call is None:
            raise NotFound
        if call.decision != decision:
            if call.state != ToolCall.State.WAITING or call.decision:
                raise Conflict("This call does not wait for your decision any more.", code="not_waiting")
            call.decision = decision
            call.save(update_fields=["decision"])
        return call


def read_decision(*, lease: Lease, call_id: str, is_too_late: bool) -> Decision | None:
    """None while there is none. Once it is too late, that is the decision. Raises LeaseLost."""
    with transaction.atomic():
        _, run = lock_held(lease)
        call = ToolCall.objects.get(run=run, call_id=call_id)
        if is_too_late and not call.decision:
            call.decision = "timed_out"
            call.save(update_fields=["decision"])
        return cast(Decision, call.decision) if call.decision else None


# --- Events ----------------------------------------------------------------------------------------------


def call_event(run: Run, call: ToolCall, now: datetime) -> events.Tool:
    """Of what a hook does behind the end of its run it is no event: `run.finished` is the last of those."""
    is_going_on = run.status in Run.ACTIVE
    return events.Tool(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk) if is_going_on else None,
        at=now,
        **row_shapes.tool_call_shape(call),
    )
