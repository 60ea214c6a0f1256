"""What every iteration of the tool loop waits for: the lock under which a running answer records its calls, and those.

In SQL, for the reason of `plain_sql`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from chatapp.actions.places import AnswerPlace
from chatapp.actions.runs import Lease
from chatapp.errors import LeaseLost
from chatapp.models import Conversation, Run, ToolCall
from chatapp.plain_sql import as_stored, execute

_LOCK = """
SELECT id FROM chatapp_conversation
WHERE id = (SELECT conversation_id FROM chatapp_run WHERE id = %s)
FOR UPDATE
"""
_HELD = """
SELECT run.id, run.conversation_id, run.user_id, run.answer_id, run.status, answer.branch_id,
    conversation.last_seq, conversation.next_position,
    (SELECT count(*) FROM chatapp_toolcall WHERE run_id = run.id) AS call_count,
    (SELECT count(*) FROM chatapp_runstep WHERE run_id = run.id) AS step_count
FROM chatapp_run AS run
JOIN chatapp_conversation AS conversation ON conversation.id = run.conversation_id
JOIN chatapp_message AS answer ON answer.id = run.answer_id
WHERE run.id = %s AND run.fence = %s AND run.status = 'running'
"""
_TO_TELL = """
SELECT * FROM chatapp_toolcall WHERE run_id = %s AND (call_id = %s OR NOT is_told) ORDER BY ordinal
"""
_OF_CONVERSATION = ("id", "user_id", "next_position", "last_seq")  # in the model's order


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run and its locked conversation, with the columns that recording takes; the others are read when asked for."""

    conversation: Conversation
    run: Run
    place: AnswerPlace
    call_count: int
    step_count: int


def hold_run(lease: Lease) -> HeldRun:
    """As `lock_held`: what a write begins with, in its transaction. Raises LeaseLost."""
    if connection.features.has_select_for_update:
        # By itself: a query that had to wait for the lock would read the run as it was before.
        execute(_LOCK, lease.run_id)
    found: list[Any] = list(Run.objects.raw(_HELD, [as_stored(lease.run_id), lease.fence]))
    if not found:
        raise LeaseLost("The conversation was deleted, or another process took this run over.")
    [run] = found
    values = (run.conversation_id, run.user_id, run.next_position, run.last_seq)
    conversation = Conversation.from_db(None, _OF_CONVERSATION, values)
    place = AnswerPlace(run.answer_id, UUID(str(run.branch_id)))
    return HeldRun(conversation, run, place, run.call_count, run.step_count)


def calls_to_tell(run: Run, call_id: str) -> list[ToolCall]:
    """This call, and those that are no messages yet, in their order."""
    return list(ToolCall.objects.raw(_TO_TELL, [as_stored(run.pk), call_id]))
