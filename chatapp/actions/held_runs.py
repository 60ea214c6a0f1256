"""What every iteration of the tool loop waits for: the lock under which a running answer records its calls, and those.

In SQL, for the reason of `plain_sql`.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from chatapp.actions.places import AnswerPlace
from chatapp.actions.runs import Lease
from chatapp.errors import LeaseLost
from chatapp.models import Conversation, Run, ToolCall
from chatapp.plain_sql import as_key, as_stored, execute

_LOCK = """
SELECT id FROM chatapp_conversation
WHERE id = (SELECT conversation_id FROM chatapp_run WHERE id = %s)
FOR UPDATE
"""
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
# In the models' order.
_OF_CONVERSATION = ("id", "user_id", "next_position", "last_seq")
_OF_RUN = ("id", "conversation_id", "user_id", "answer_id", "status")


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run and its locked conversation, with the columns that recording takes; the others are read when asked for."""

    conversation: Conversation
    run: Run
    place: AnswerPlace
    is_anything_behind: bool
    """The answer: the user has sent something that no model call has seen."""
    call_count: int
    step_count: int


def hold_run(lease: Lease) -> HeldRun:
    """As `lock_held`: what a write begins with, in its transaction. Raises LeaseLost."""
    if connection.features.has_select_for_update:
        # By itself: a query that had to wait for the lock would read the run as it was before.
        execute(_LOCK, lease.run_id)
    row = execute(_HELD, lease.run_id, lease.fence).fetchone()
    if row is None:
        raise LeaseLost("The conversation was deleted, or another process took this run over.")
    conversation_id, user_id, branch_id = (as_key(value) for value in row[:3])
    position, next_position, last_seq, call_count, step_count = row[3:]
    of_conversation = (conversation_id, user_id, next_position, last_seq)
    of_run = (lease.run_id, conversation_id, user_id, lease.answer_id, Run.Status.RUNNING)
    return HeldRun(
        Conversation.from_db(None, _OF_CONVERSATION, of_conversation),
        Run.from_db(None, _OF_RUN, of_run),
        AnswerPlace(lease.answer_id, branch_id),
        position < next_position - 1,
        call_count,
        step_count,
    )


def calls_to_tell(run: Run, call_id: str) -> list[ToolCall]:
    """This call, and those that are no messages yet, in their order."""
    return list(ToolCall.objects.raw(_TO_TELL, [as_stored(run.pk), call_id]))
