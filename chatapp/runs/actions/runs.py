"""Claims, renews and records runs. Every write names the fencing number of its lease; an old one changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from agents import events
from agents.plan.steps import PlanStep
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import plan_shape
from chatapp.operations.database.forgetting_counts import check_forgetting_count
from chatapp.operations.database.statements import (
    as_key,
    as_stored,
    columns_of,
    execute,
    insert_rows,
    read_models,
)
from chatapp.operations.errors import LeaseLost
from chatapp.providers.actions import record_calls
from chatapp.providers.selectors import unrecorded_calls
from chatapp.providers.usage import CallUsage, usage_event
from chatapp.realtime import event_log
from chatapp.realtime.models import Event
from chatapp.runs import shapes
from chatapp.runs.actions.claims import Lease as Lease
from chatapp.runs.actions.claims import started_event
from chatapp.runs.actions.message_order import AnswerPosition
from chatapp.runs.models import AnswerPiece, Run, ToolCall
from memory.types import Part, ReasoningPart, TextPart


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """The text of an answer so far, and how many characters of it are already stored."""

    lease: Lease
    text: str
    reasoning: str = ""
    text_stored: int = 0
    reasoning_stored: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        reasoning: tuple[Part, ...] = (ReasoningPart(self.reasoning),) if self.reasoning else ()
        return (*reasoning, TextPart(self.text)) if self.text else reasoning


def claim_run(
    *,
    run_id: UUID,
    holder: str,
    model_name: str,
    now: datetime,
    mode: str = "react",
    forgotten_count: int | None = None,
) -> Lease | None:
    """Claim a queued run and return its lease; None if another process was faster or the run has ended.

    Raise ReadForgotten if something was forgotten since the context was read.
    """
    with transaction.atomic():
        check_nothing_forgotten(run_id, forgotten_count)
        found = lock_run(run_id)
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
        run.fence, run.status, run.mode = run.fence + 1, Run.Status.RUNNING, mode
        Message.objects.filter(pk=run.answer_id).update(model_name=model_name)
        run.answer.model_name = model_name
        event_log.append(conversation, started_event(run, now), run=run)
        return Lease(run.pk, run.answer_id, run.fence)


def check_nothing_forgotten(run_id: UUID, forgotten_count: int | None) -> None:
    """Raise ReadForgotten if something was forgotten since the count was read, unless it is None. Call this before the
    run is locked: counts are locked before conversations, as everywhere, or two transactions could deadlock."""
    if forgotten_count is not None and (read := Conversation.objects.filter(runs=run_id).first()) is not None:
        check_forgetting_count(read.forgetting_keys, forgotten_count)


_LOCK = """
SELECT id FROM chatapp_conversation
WHERE id = (SELECT conversation_id FROM chatapp_run WHERE id = %s)
FOR UPDATE
"""
# A conversation without a user is being deleted, and its runs have lost their leases.
_ROWS = """
SELECT {conversation}, {run}, {answer}
FROM chatapp_run AS run
JOIN chatapp_conversation AS conversation ON conversation.id = run.conversation_id
JOIN chatapp_message AS answer ON answer.id = run.answer_id
WHERE run.id = %s AND conversation.user_id IS NOT NULL
"""


@cache
def _rows_statement() -> str:
    return _ROWS.format(
        conversation=columns_of(Conversation, "conversation"),
        run=columns_of(Run, "run"),
        answer=columns_of(Message, "answer"),
    )


def lock_run(run_id: UUID) -> tuple[Conversation, Run] | None:
    """Lock the run's conversation and return both, the run with its answer; None if it was deleted."""
    _lock_conversation_of(run_id)
    found = next(read_models((Conversation, Run, Message), _rows_statement(), run_id), None)
    if found is None:
        return None
    conversation, run, answer = found
    run.conversation, run.answer = conversation, answer
    return conversation, run


def _lock_conversation_of(run_id: UUID) -> None:
    """Lock the run's conversation in a separate statement: a query that waits for the lock reads the run as it was
    before."""
    if connection.features.has_select_for_update:
        execute(_LOCK, run_id)


def lock_leased(lease: Lease) -> tuple[Conversation, Run]:
    """Lock the conversation and return it with its run, for a write under this lease. Raise LeaseLost."""
    found = lock_run(lease.run_id)
    if found is None or found[1].fence != lease.fence or found[1].status != Run.Status.RUNNING:
        raise lease_lost(found)
    return found


def lease_lost(found: tuple[Conversation, Run] | None) -> LeaseLost:
    """Return the error for a lease under which nothing can be written; `found` is the result of `lock_run`."""
    if found is None:
        return LeaseLost("The conversation was deleted.")
    _, run = found
    if run.status in Run.ACTIVE:
        return LeaseLost("Another process took this run over.")
    return LeaseLost(run.error_message or f"It has ended: {run.status}.")


def renew_leases(*, leases: Iterable[Lease], now: datetime) -> set[UUID]:
    """Renew the leases, and return the runs whose lease is lost."""
    lost = set()
    expires = now + timedelta(seconds=settings.LEASE_S)
    with transaction.atomic():
        # Use the order in which a forgetting ends runs, or the two could deadlock.
        for lease in sorted(leases, key=attrgetter("run_id")):
            held = Run.objects.filter(pk=lease.run_id, fence=lease.fence, status=Run.Status.RUNNING)
            if not held.update(lease_expires_at=expires, is_last_term=False):
                lost.add(lease.run_id)
    return lost


def extend_expired_lease_once(*, run_id: UUID, fence: int, now: datetime) -> bool:
    """Give the holder of an expired lease one heartbeat to renew it, once. Return whether this call gave it.

    After a database outage longer than a lease, every lease has expired, and living processes renew theirs within a
    heartbeat.
    """
    expired = Run.objects.filter(
        Run.is_out_of_lease(now), pk=run_id, fence=fence, status=Run.Status.RUNNING, is_last_term=False
    )
    expires = now + timedelta(seconds=settings.HEARTBEAT_S)
    return bool(expired.update(is_last_term=True, lease_expires_at=expires))


def checkpoint_answers(*, answers: Iterable[PartialAnswer]) -> set[UUID]:
    """Store the new text of all answers of a process in one transaction. Return the runs whose answers are stored.

    Skip runs whose lease is lost or that are ending right now. The others' rows are locked, so that ending them waits
    until their pieces are visible.
    """
    with transaction.atomic():
        by_run = {answer.lease.run_id: answer for answer in answers}
        running = Run.objects.filter(pk__in=by_run, status=Run.Status.RUNNING)
        # `no_key`, so that rows that refer to the run can be inserted meanwhile.
        locked = running.select_for_update(skip_locked=True, no_key=True).values_list("pk", "fence")
        held = {run_id for run_id, fence in locked if by_run[run_id].lease.fence == fence}
        # A checkpoint is repeated if it was committed but the reply was lost.
        insert_rows(
            [piece for run_id in held for piece in _new_pieces(by_run[run_id])],
            on_conflict='(message_id, kind, "offset") DO UPDATE SET text = excluded.text',
        )
        return held


def _new_pieces(answer: PartialAnswer) -> list[AnswerPiece]:
    new = (
        (AnswerPiece.Kind.REASONING, answer.reasoning_stored, answer.reasoning),
        (AnswerPiece.Kind.TEXT, answer.text_stored, answer.text),
    )
    return [
        AnswerPiece(message_id=answer.lease.answer_id, kind=kind, offset=stored, text=text[stored:])
        for kind, stored, text in new
        if len(text) > stored
    ]


def record_facts(*, lease: Lease, facts: Sequence[events.Fact]) -> None:
    """Append events of a running run. Raise LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        event_log.append(conversation, *facts, run=run)


def facts_are_recorded(*, lease: Lease, facts: Sequence[events.Fact]) -> bool:
    """Return whether the last of the facts is stored, and so all of them: they are stored together."""
    last = facts[-1]
    return Event.objects.filter(run=lease.run_id, type=last.type, at=last.at).exists()


def record_plan(
    *, lease: Lease, steps: Sequence[PlanStep], spent: Sequence[CallUsage], now: datetime
) -> None:
    """Store the current plan of a run and the model calls so far, each once even if repeated. Raise LeaseLost."""
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        spent = unrecorded_calls(spent)
        record_calls(run, spent)
        run.plan = shapes.plan_to_json(steps)
        run.save(update_fields=["plan"])
        usage = [usage_event(run, call, now) for call in spent]
        event_log.append(conversation, *usage, plan_fact(run, now), run=run)


def plan_fact(run: Run, now: datetime) -> events.Plan:
    steps = [events.PlannedStep(**step) for step in plan_shape(run) or ()]
    return events.Plan(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk),
        at=now,
        round=max((step.round for step in steps), default=1),
        steps=steps,
    )


def stops_requested(*, run_ids: Iterable[UUID]) -> set[UUID]:
    return set(Run.objects.filter(pk__in=list(run_ids), stop_requested=True).values_list("pk", flat=True))


_HELD = """
SELECT conversation.id, conversation.user_id, answer.branch_id,
    answer.position, conversation.next_position, conversation.last_seq,
    (SELECT count(*) FROM chatapp_toolcall WHERE run_id = run.id),
    (SELECT count(*) FROM chatapp_runstep WHERE run_id = run.id)
FROM chatapp_run AS run
JOIN chatapp_conversation AS conversation ON conversation.id = run.conversation_id
JOIN chatapp_message AS answer ON answer.id = run.answer_id
WHERE run.id = %s AND run.fence = %s AND run.status = 'running'
"""
_TO_TELL = """
SELECT * FROM chatapp_toolcall WHERE run_id = %s AND (call_id = %s OR NOT is_told) ORDER BY ordinal
"""
# In the order of the models' fields.
_OF_CONVERSATION = ("id", "user_id", "next_position", "last_seq")
_OF_RUN = ("id", "conversation_id", "user_id", "answer_id", "status")


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """A run and its locked conversation, with the columns needed to record calls; others are loaded on access."""

    conversation: Conversation
    run: Run
    place: AnswerPosition
    has_unseen_messages: bool
    """Whether the user has sent a message that no model call has seen."""
    call_count: int
    step_count: int


def lock_for_calls(lease: Lease) -> LeasedRun:
    """Lock like `lock_leased`, and read the columns needed to record calls in one query. Raise LeaseLost."""
    _lock_conversation_of(lease.run_id)
    row = execute(_HELD, lease.run_id, lease.fence).fetchone()
    if row is None:
        raise lease_lost(lock_run(lease.run_id))
    conversation_id, user_id, branch_id = (as_key(value) for value in row[:3])
    position, next_position, last_seq, call_count, step_count = row[3:]
    of_conversation = (conversation_id, user_id, next_position, last_seq)
    of_run = (lease.run_id, conversation_id, user_id, lease.answer_id, Run.Status.RUNNING)
    return LeasedRun(
        Conversation.from_db(None, _OF_CONVERSATION, of_conversation),
        Run.from_db(None, _OF_RUN, of_run),
        AnswerPosition(lease.answer_id, branch_id),
        position < next_position - 1,
        call_count,
        step_count,
    )


def calls_without_message(run: Run, call_id: str) -> list[ToolCall]:
    """Return this call and the run's other calls that are not messages yet, in order."""
    return list(ToolCall.objects.raw(_TO_TELL, [as_stored(run.pk), call_id]))
