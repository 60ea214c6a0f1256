"""Regenerates an answer, continues an answer, or shows another branch: requests of users without a message."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.branches import lineage_below, newest_branch_showing, visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.operations.database.access import find_row
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log
from chatapp.runs.actions.sending import Receipt, queue_run, refuse_while_running
from chatapp.runs.actions.unseen_messages import move_unseen_to
from chatapp.runs.models import Run


def regenerate_message(
    *,
    user: User,
    conversation_id: str,
    message_id: str,
    model: ModelConfig | None,
    now: datetime,
    mode: str = "",
) -> Receipt:
    """Queue another answer to the question before `message_id`, in a new branch; the first one stays.

    If neither `mode` nor the conversation sets a mode, the last answer's mode is used.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        refuse_while_running(conversation)
        question = _question_before(accessible_message(user, conversation_id, message_id))
        branch = Branch.objects.create(conversation=conversation, lineage=lineage_below(question))
        if model is not None:
            conversation.model = model
        mode = mode or ("" if conversation.mode else _last_mode(question))
        run = queue_run(conversation, branch=branch, question=question, after=question, now=now, mode=mode)
        record_created_id(run.pk)
        return Receipt.of(run, question.pk, conversation.last_seq)


def _last_mode(question: Message) -> str:
    return question.runs_asked.order_by("-created_at", "-pk").values_list("mode", flat=True).first() or ""


def _question_before(message: Message) -> Message:
    """Return the question above a message, which may be an answer that continues an interrupted one."""
    found: Message | None = message
    while found is not None and (found.role != Message.Role.USER or found.kind == Message.Kind.INJECTED):
        found = found.parent
    if found is None:
        raise InvalidInput("There is no question before this message to answer again.")
    return found


def continue_run(*, user: User, run_id: str, now: datetime) -> Receipt:
    """Queue a run that continues a cut, stopped, failed or interrupted answer, which must be the last one shown.

    Messages held behind a stopped answer are sent into the new run. Raise NotFound, Conflict.
    """
    with transaction.atomic():
        runs = Run.objects.filter(conversation__user=user).select_related("answer", "question")
        conversation = lock_conversation(user, find_row(runs, run_id).conversation_id)
        refuse_while_running(conversation)
        # Read it again under the lock: the answer may have ended or been deleted meanwhile.
        run = find_row(runs, run_id)
        assert conversation.branch is not None
        if not _is_last(run.answer, conversation.branch) or run.answer.status == Message.Status.COMPLETE:
            raise Conflict("Only an unfinished last answer can be continued.")
        new = queue_run(
            conversation,
            branch=conversation.branch,
            question=run.question,
            after=run.answer,
            continues=run.answer,
            now=now,
        )
        move_unseen_to(conversation, run.answer, new, now)
        record_created_id(new.pk)
        return Receipt.of(new, run.answer_id, conversation.last_seq)


def _is_last(answer: Message, branch: Branch) -> bool:
    """Return whether the branch shows the answer and, after it, only messages sent while it was written."""
    shown = visible_messages(branch, answer.position - 1)
    sent = shown.filter(parent=answer, kind=Message.Kind.INJECTED, position__gt=answer.position)
    return set(shown.values_list("pk", flat=True)) == {answer.pk, *sent.values_list("pk", flat=True)}


def show_message(*, user: User, conversation_id: str, message_id: str, now: datetime) -> Conversation:
    """Show the branch with that message. Raise NotFound, Conflict (a run is active)."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        refuse_while_running(conversation)
        branch = newest_branch_showing(accessible_message(user, conversation_id, message_id))
        if branch != conversation.branch:
            conversation.branch = branch
            conversation.save(update_fields=["branch"])
            event_log.append(conversation, updated_event(conversation, now))
    return conversation


def receipt_of_run(user: User, run_id: str) -> Receipt:
    """Return the receipt of a run that continues or regenerates an answer. Raise NotFound."""
    run = find_row(Run.objects.filter(conversation__user=user).select_related("conversation"), run_id)
    first = run.events.order_by("seq").values_list("seq", flat=True).first()
    asked = run.continues_id or run.question_id
    seq = first - 1 if first else run.conversation.last_seq
    return Receipt.of(run, asked, seq, is_new=False)
