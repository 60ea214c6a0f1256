"""The life of a tool call: recorded before it runs, its result stored before the model sees it, each change an event.

Once all calls of a step have results, they become messages of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

from django.db import IntegrityError, transaction
from django.db.models import Q

from agents import events
from agents.loop.tool_calls import calling_part
from agents.ports import CallResult, Decision, RequestedCall
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import tool_call_shape
from chatapp.operations.database.statements import insert_rows, update_row
from chatapp.operations.errors import Conflict, NotFound
from chatapp.providers.actions import record_calls
from chatapp.providers.usage import CallUsage, usage_event
from chatapp.realtime import event_log
from chatapp.runs.actions.message_order import AnswerMessage, AnswerPosition, insert_before_answer
from chatapp.runs.actions.runs import Lease, calls_without_message, lock_for_calls, lock_leased
from chatapp.runs.models import Run, RunStep, ToolCall
from chatapp.runs.selectors import accessible_run
from memory.turns import INTERRUPTED
from memory.types import ToolResultPart

NOT_RUN = "This call was not run: the answer ended before."
UNFINISHED = "Interrupted before it was finished; it can be called again."


def record_tool_calls(
    *,
    lease: Lease,
    calls: Sequence[RequestedCall],
    spent: Sequence[CallUsage],
    now: datetime,
    plan_step: str = "",
) -> None:
    """Record all calls of a step, and the cost of the model call that requested them. Raise LeaseLost.

    A repeated call of this function changes nothing. Calls of a plan's step are not messages of the conversation.
    """
    try:
        with transaction.atomic():
            held = lock_for_calls(lease)
            steps = record_calls(held.run, spent, held.step_count)
            step = _asking_step(held.run, steps, plan_step)
            rows = [
                call_row(held.run, call, now, ordinal=ordinal, step=step, plan_step=plan_step)
                for ordinal, call in enumerate(calls, start=held.call_count)
            ]
            insert_rows(rows)
            usage = [usage_event(held.run, call, now) for call in spent]
            call_facts = [call_event(held.run, row, now) for row in rows]
            waits = [waiting_event(held.conversation, now)] if any(is_waiting(row) for row in rows) else []
            event_log.append(held.conversation, *usage, *call_facts, *waits, run=held.run)
    except IntegrityError:
        # If the calls exist, the first try was committed and only its reply was lost.
        if not ToolCall.objects.filter(run=lease.run_id, call_id=calls[0].call_id).exists():
            raise


def call_row(
    run: Run,
    call: RequestedCall,
    now: datetime,
    *,
    ordinal: int,
    step: int = 0,
    plan_step: str = "",
    hook_id: str = "",
) -> ToolCall:
    """Return the row of a new call, requested by a model, a step of a plan or a hook."""
    is_running = call.state == "running"
    return ToolCall(
        run=run,
        step=step,
        plan_step=plan_step,
        hook_id=hook_id,
        # These calls never become messages.
        is_told=bool(plan_step or hook_id),
        ordinal=ordinal,
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
        state=call.state,
        is_idempotent=call.is_idempotent,
        has_begun=is_running,
        requested_at=now,
        started_at=now if is_running else None,
    )


def _asking_step(run: Run, recorded: Sequence[RunStep], plan_step: str) -> int:
    """Return the number of the model call that requests the calls: the last one of its step of the plan."""
    for step in reversed(recorded):
        if step.plan_step == plan_step:
            return step.n
    earlier = RunStep.objects.filter(run=run, plan_step=plan_step).order_by("-n")
    return earlier.values_list("n", flat=True).first() or 0


def start_tool_call(*, lease: Lease, call_id: str, now: datetime) -> None:
    """Mark an approved call as running. Raise LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        call = ToolCall.objects.get(run=run, call_id=call_id)
        call.state, call.started_at, call.has_begun = ToolCall.State.RUNNING, now, True
        call.save(update_fields=["state", "started_at", "has_begun"])
        event_log.append(conversation, call_event(run, call, now), run=run)


def finish_tool_call(*, lease: Lease, result: CallResult, now: datetime) -> bool:
    """Store a result. The last result of a step turns its calls into messages. A repeated result is stored once.

    Return whether it was the last and no message sent meanwhile waits. Raise LeaseLost.
    """
    with transaction.atomic():
        held = lock_for_calls(lease)
        calls = calls_without_message(held.run, result.call.call_id)
        call = next(row for row in calls if row.call_id == result.call.call_id)
        if call.state not in ToolCall.OPEN:
            return False
        write_result(call, result.state, result.part, now, is_cut=result.is_cut)
        unsent = [row for row in calls if not row.is_told]
        is_last = not any(row.state in ToolCall.OPEN for row in unsent)
        if is_last:
            _insert_call_messages(held.conversation, held.place, unsent, now)
        # Use a set: the call is one of `unsent`, unless it belongs to a step of a plan.
        save_results({call, *unsent})
        event_log.append(held.conversation, call_event(held.run, call, now), run=held.run)
        return is_last and not held.has_unseen_messages


def write_result(
    call: ToolCall, state: str, part: ToolResultPart, now: datetime, *, is_cut: bool = False
) -> None:
    """Set the result; `save_results` stores it."""
    call.state = state
    call.result = message_values.parts_to_json([part])
    call.is_cut = is_cut
    call.finished_at = now


def save_results(calls: Iterable[ToolCall]) -> None:
    """Store the results. The run's conversation must be locked."""
    for call in calls:
        update_row(call, "state", "result", "is_cut", "is_told", "message", "finished_at")


def _insert_call_messages(
    conversation: Conversation, place: AnswerPosition, calls: Sequence[ToolCall], now: datetime
) -> None:
    """Insert a message with the calls of one step, and one with the result of each.

    Text that the model wrote around the calls is already part of the answer, in which it was shown.
    """
    if not calls:
        return
    messages_before = [AnswerMessage(Message.Role.TOOL, call.result) for call in calls]
    asked_in = calls[0].message  # set by an earlier version, which stored that message before the calls ran
    if asked_in is None:
        asking = message_values.parts_to_json(
            calling_part(call.call_id, call.name, call.arguments) for call in calls
        )
        messages_before.insert(0, AnswerMessage(Message.Role.ASSISTANT, asking))
    inserted = insert_before_answer(conversation, place, messages_before, now)
    for call in calls:
        call.message, call.is_told = asked_in or inserted[0], True


def close_tool_calls(
    conversation: Conversation, run: Run, now: datetime
) -> list[events.Tool | events.ConversationAttention]:
    """Interrupt calls still open at a run's end, so that each has a result. `conversation` must be locked."""
    is_left = Q(state__in=ToolCall.OPEN) | Q(is_told=False)
    left = list(ToolCall.objects.filter(is_left, run=run).order_by("ordinal"))
    if not left:
        return []
    closed = [call for call in left if call.state in ToolCall.OPEN]
    was_waiting = any(is_waiting(call) for call in closed)
    for call in closed:
        interrupt_call(call, now)
    place = AnswerPosition(run.answer_id, run.answer.branch_id)
    _insert_call_messages(conversation, place, [call for call in left if not call.is_told], now)
    save_results(left)
    call_facts = [call_event(run, call, now) for call in closed]
    return [*call_facts, waiting_event(conversation, now)] if was_waiting else [*call_facts]


def interrupt_call(call: ToolCall, now: datetime) -> None:
    """Set the result of an open call that was interrupted; `save_results` stores it."""
    text = NOT_RUN if not call.has_begun else UNFINISHED if call.is_idempotent else INTERRUPTED
    part = ToolResultPart(call.call_id, call.name, text, is_error=True)
    write_result(call, ToolCall.State.INTERRUPTED, part, now)


# --- Consent ---------------------------------------------------------------------------------------------


def decide_tool_call(*, user: User, run_id: str, call_id: str, approve: bool, now: datetime) -> ToolCall:
    """Store the user's decision about a waiting call. Raise NotFound; Conflict if it is not waiting."""
    decision = "approved" if approve else "denied"
    with transaction.atomic():
        run = accessible_run(user, run_id)
        conversation = lock_conversation(user, run.conversation_id)
        call = ToolCall.objects.filter(run=run, call_id=call_id).select_related("run").first()
        if call is None:
            raise NotFound
        # Repeating the same decision, e.g. from another tab, is no conflict.
        if call.decision != decision:
            if call.state != ToolCall.State.WAITING or call.decision:
                raise Conflict("This call no longer waits for your decision.", code="not_waiting")
            _store_decision(conversation, call, decision, now)
        return call


def read_decision(*, lease: Lease, call_id: str, is_too_late: bool, now: datetime) -> Decision | None:
    """Return the decision; None while there is none. When it is too late, that is the decision. Raise LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        call = ToolCall.objects.get(run=run, call_id=call_id)
        # The lock ensures that only one of the user's decision and the timeout counts.
        if is_too_late and not call.decision:
            _store_decision(conversation, call, "timed_out", now)
        return cast(Decision, call.decision) if call.decision else None


def _store_decision(conversation: Conversation, call: ToolCall, decision: str, now: datetime) -> None:
    call.decision = decision
    call.save(update_fields=["decision"])
    event_log.append(conversation, waiting_event(conversation, now))


# --- Events ----------------------------------------------------------------------------------------------


def is_waiting(call: ToolCall) -> bool:
    """Return whether the call waits for its user's decision."""
    return call.state == ToolCall.State.WAITING and not call.decision


def waiting_event(conversation: Conversation, now: datetime) -> events.ConversationAttention:
    """Return the event with the number of the conversation's calls that wait for their user's decision."""
    count = ToolCall.undecided().filter(run__conversation=conversation).count()
    return events.ConversationAttention(conversation_id=str(conversation.pk), at=now, waiting_calls=count)


def call_event(run: Run, call: ToolCall, now: datetime) -> events.Tool:
    """Return the event of a call. After a run's end it names no run, because `run.finished` is the run's last event."""
    is_going_on = run.status in Run.ACTIVE
    return events.Tool(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk) if is_going_on else None,
        at=now,
        **tool_call_shape(call),
    )
