"""Messages sent while an answer is being written: stored at once, seen by the next model call or answered next. Until a
call has seen them, they can be edited and withdrawn."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from agents import events
from agents.events import MessageEdited
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.actions.messages import append_message
from chatapp.conversations.models import Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.messages import is_queued
from chatapp.files.actions import delete_unshared_attachments
from chatapp.files.selectors import accessible_attachments
from chatapp.operations.errors import Conflict
from chatapp.realtime import event_log
from chatapp.recall.actions.blanking import blank_messages, publish_forgotten
from chatapp.recall.actions.indexing import reindex_messages
from chatapp.runs.actions.message_order import (
    has_new_messages,
    messages_behind,
    move_answer_behind,
    unknown_messages,
)
from chatapp.runs.actions.runs import Lease, lock_leased
from chatapp.runs.actions.sending import (
    NewMessage,
    Receipt,
    find_receipt,
    message_parts,
    queue_run,
    refuse_while_running,
    send_message,
)
from chatapp.runs.actions.unseen_messages import moved_event, release_unseen
from chatapp.runs.models import Run
from memory.tokens import estimate_parts


def inject_message(*, user: User, conversation_id: str, new: NewMessage, now: datetime) -> Receipt:
    """Store a message into the active run or, if there is none, as an ordinary message with its own run.

    Raise NotFound, InvalidInput (the key was used for something else).
    """
    try:
        with transaction.atomic():
            return _inject(user, conversation_id, new, now)
    except IntegrityError:
        # A concurrent request with this key came first.
        receipt = find_receipt(user, conversation_id, new)
        if receipt is None:
            raise
        return receipt


def _inject(user: User, conversation_id: str, new: NewMessage, now: datetime) -> Receipt:
    conversation = lock_conversation(user, conversation_id)
    sent_before = find_receipt(user, str(conversation.pk), new)
    if sent_before is not None:
        return sent_before
    run = Run.active().filter(conversation=conversation).select_related("answer__branch").first()
    if run is None:
        return send_message(user=user, conversation_id=conversation_id, new=new, model=None, now=now)
    attachments = accessible_attachments(user, list(new.attachment_ids))
    message = append_message(
        conversation,
        branch=run.answer.branch,
        role=Message.Role.USER,
        kind=Message.Kind.INJECTED,
        # Pinned, so that no cut of the context removes it before a model has seen it.
        pinned=True,
        parent=run.answer,
        parts=message_parts(new.text, attachments),
        now=now,
        client_id=new.client_id,
        request_hash=new.request_hash(str(conversation.pk), None) if new.client_id is not None else "",
    )
    message.attachments.set(attachments)
    conversation.last_activity_at = now
    conversation.save(update_fields=["next_position", "last_activity_at"])
    created = events.MessageCreated(
        conversation_id=str(conversation.pk),
        run_id=str(run.pk),
        at=now,
        message=message_shape(message),
    )
    seq = event_log.append(conversation, created, run=run)
    return Receipt.of(run, message.pk, seq, is_injected=True)


def take_injected(*, lease: Lease, known: Collection[UUID], now: datetime) -> list[Message]:
    """Move the messages sent during the run before its answer, and return those that the run has not seen, oldest
    first. A repeated call changes nothing. Raise LeaseLost."""
    if not has_new_messages(lease.answer_id, known):  # the common case, checked without a lock
        return []
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        messages = messages_behind(run)
        if messages:
            move_answer_behind(conversation, run, messages)
            moved = moved_event(conversation, run.answer_id, messages, now, str(run.pk))
            event_log.append(conversation, moved, run=run)
        return list(unknown_messages(run, known))


def send_queued(*, user: User, conversation_id: str, now: datetime) -> Receipt:
    """Queue the run that answers the messages left by a stopped answer. Raise NotFound; Conflict if none wait or a run
    is active."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        refuse_while_running(conversation)
        branch = conversation.branch
        assert branch is not None
        last = release_unseen(conversation, branch, now)
        if last is None:
            raise Conflict("There are no waiting messages to send.")
        run = queue_run(conversation, branch=branch, question=last, after=last, now=now)
        record_created_id(run.pk)
        return Receipt.of(run, last.pk, conversation.last_seq)


def edit_queued(
    *, user: User, conversation_id: str, message_id: str, new: NewMessage, now: datetime
) -> Message | None:
    """Edit a message that is still queued, keeping its position; None if it is not queued. Raise NotFound."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        # Check it under the lock: a model call may take it in at any moment.
        if not is_queued(message):
            return None
        attachments = accessible_attachments(user, list(new.attachment_ids))
        message.parts = message_parts(new.text, attachments)
        message.token_estimate = estimate_parts(message_values.parts_from_json(message.parts))
        message.save(update_fields=["parts", "token_estimate"])
        message.attachments.set(attachments)
        # A message held after a Stop may already be in the index. Temporary conversations are never indexed.
        if message.position < conversation.indexed_below:
            reindex_messages(message.user_id, [message])
        shape = message_shape(message)
        event_log.append(
            conversation, MessageEdited(conversation_id=str(conversation.pk), at=now, message=shape)
        )
        # Otherwise a retry of this edit, after a model call has seen the message, would create a branch.
        record_created_id(message.pk)
        return message


def withdraw_queued(
    *, user: User, conversation_id: str, message_id: str, now: datetime
) -> tuple[str, ...] | None:
    """Blank a message that is still queued; the answer continues. Return the hashes of attachments that may now be
    unused; None if it is no longer queued. Raise NotFound."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        if not is_queued(message):
            return None
        hashes = delete_unshared_attachments([message.pk])
        blank_messages([message], now)
        publish_forgotten(conversation, [message], now)
        return hashes
