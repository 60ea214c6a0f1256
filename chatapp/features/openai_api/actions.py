"""Writes what OpenAI's clients store in a conversation besides its turns: instructions, items, metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from agents.events import MessageCreated
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.actions.conversations import create_conversation, title_from
from chatapp.conversations.actions.messages import append_message
from chatapp.conversations.branches import lineage_below, visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.features.openai_api.models import ConversationMetadata, StoredResponse
from chatapp.files.selectors import accessible_attachments
from chatapp.operations.database.text import normalize_text
from chatapp.operations.workers import jobs
from chatapp.realtime import event_log
from chatapp.runs.actions.sending import leaf_of, message_parts, refuse_while_running
from chatapp.runs.models import Run
from memory.bounds import MAX_CHARS


def keep_instructions(
    *, user: User, conversation_id: str, text: str, after: str | None, now: datetime
) -> str | None:
    """Store a client's system prompt, pinned so that it stays in context, and unpin earlier ones.

    `after` is the message that the turn continues; None means the end. Return the message that it continues now.
    """
    text = normalize_text(text, MAX_CHARS)
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        # Save a new branch only if the prompt is new. Otherwise `send_message` creates the branch.
        branch = _branch_behind(user, conversation, after)
        kept = visible_messages(branch).filter(role=Message.Role.SYSTEM, pinned=True)
        parts = [{"type": "text", "text": text}]
        # Clients send the same prompt with every question.
        if any(row.parts == parts for row in kept):
            return after
        # Check only now: a question repeated while it is being answered changes no prompt and must not be refused here.
        refuse_while_running(conversation)
        kept.update(pinned=False)
        if branch._state.adding:
            branch.save()
        conversation.branch = branch
        conversation.save(update_fields=["branch"])
        return str(_append(conversation, Message.Role.SYSTEM, parts, now, pinned=True).pk)


def _branch_behind(user: User, conversation: Conversation, message_id: str | None) -> Branch:
    """Return the branch shown if the message is its last one, else a new unsaved branch."""
    assert conversation.branch is not None
    if message_id is None:
        return conversation.branch
    message = accessible_message(user, conversation.pk, message_id)
    if message == leaf_of(conversation):
        return conversation.branch
    return Branch(conversation=conversation, lineage=lineage_below(message))


@dataclass(frozen=True, slots=True)
class NewItem:
    """A message to add as it is, without an answer."""

    role: str
    text: str
    attachment_ids: Sequence[str] = ()


@transaction.atomic
def begin_conversation(
    *, user: User, items: Sequence[NewItem], metadata: Mapping[str, str], now: datetime
) -> Conversation:
    """Create a conversation that begins with these messages, and return it."""
    conversation = create_conversation(user=user, now=now)
    if metadata:
        set_metadata(conversation=conversation, metadata=metadata)
    if items:
        _append_items(user, str(conversation.pk), items, now)
    return conversation


@transaction.atomic
def add_items(*, user: User, conversation_id: str, items: Sequence[NewItem], now: datetime) -> list[Message]:
    """Append one or more messages to the branch shown, and return them.

    Raise NotFound, and Conflict if a run is active.
    """
    rows = _append_items(user, conversation_id, items, now)
    # The first id is enough: messages added under one lock have consecutive positions.
    record_created_id(rows[0].pk)
    return rows


def _append_items(user: User, conversation_id: str, items: Sequence[NewItem], now: datetime) -> list[Message]:
    conversation = lock_conversation(user, conversation_id)
    refuse_while_running(conversation)
    rows = [_add_item(user, conversation, item, now) for item in items]
    first = next((item.text for item in items if item.role == Message.Role.USER), "")
    conversation.title = conversation.title or title_from(first)
    conversation.last_activity_at = now
    conversation.save(update_fields=["title", "last_activity_at"])
    # The end of a run indexes its messages, but these belong to no run.
    jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))
    return rows


def _add_item(user: User, conversation: Conversation, item: NewItem, now: datetime) -> Message:
    attachments = accessible_attachments(user, list(item.attachment_ids))
    parts = message_parts(item.text, attachments)
    row = _append(conversation, item.role, parts, now, pinned=item.role == Message.Role.SYSTEM)
    # Link the uploads, because the clean-up deletes those that no message uses.
    row.attachments.set(attachments)
    return row


def _append(
    conversation: Conversation, role: str, parts: list[dict[str, Any]], now: datetime, *, pinned: bool
) -> Message:
    """Append a message at the end of the branch shown. `conversation` must be locked."""
    assert conversation.branch is not None
    row = append_message(
        conversation,
        branch=conversation.branch,
        role=role,
        parts=parts,
        now=now,
        parent=leaf_of(conversation),
        pinned=pinned,
    )
    created = MessageCreated(conversation_id=str(conversation.pk), at=now, message=message_shape(row))
    event_log.append(conversation, created)
    return row


@transaction.atomic
def store_response(
    *,
    user: User,
    run_id: str,
    previous: StoredResponse | None,
    owns_turn: bool,
    metadata: Mapping[str, str],
    now: datetime,
) -> StoredResponse:
    """Store the response of a run and return it; return the existing one if the request was repeated. Store no metadata
    if the turn was forgotten meanwhile. Raise NotFound if its conversation was deleted."""
    run = Run.objects.get(pk=run_id)
    # Forgetting the turn takes this lock: an earlier one is visible here, a later one finds the row.
    lock_conversation(user, run.conversation_id)
    turn = Message.objects.filter(pk__in=[run.question_id, run.answer_id])
    was_forgotten = turn.filter(forgotten_at__isnull=False).exists()
    values = {
        "user": user,
        "previous": previous.pk if previous else None,
        "owns_turn": owns_turn,
        "metadata": {} if was_forgotten else dict(metadata),
        "created_at": now,
    }
    return StoredResponse.objects.get_or_create(run=run, defaults=values)[0]


def forget_metadata(message_ids: Collection[UUID]) -> None:
    """Blank the metadata of the responses that these messages belong to, in the transaction that forgets them."""
    if message_ids:
        turns = Q(run__question__in=message_ids) | Q(run__answer__in=message_ids)
        StoredResponse.objects.filter(turns).exclude(metadata={}).update(metadata={})


def delete_response(response: StoredResponse) -> None:
    response.delete()


def set_metadata(*, conversation: Conversation, metadata: Mapping[str, str]) -> None:
    """Replace the metadata that a client stores with its conversation."""
    ConversationMetadata.objects.update_or_create(
        conversation=conversation, defaults={"metadata": dict(metadata)}
    )
