"""Shares conversations, revokes their links, and copies the images of shared messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.sharing.models import SharedConversation
from chatapp.files.attachments import copy_attachment, delete_unused
from chatapp.files.models import Attachment
from chatapp.forgetting.actions.collecting import Work
from chatapp.forgetting.actions.derived_texts import is_named_after
from chatapp.operations.errors import NotFound


@transaction.atomic
def share_conversation(
    *, user: User, conversation_id: str, expires_at: datetime | None, now: datetime
) -> tuple[SharedConversation, bool]:
    """Share the conversation in its present state. Return (row, whether it is new). Raise NotFound.

    A conversation that is already shared keeps its link, which shows the new state from then on.
    """
    conversation = lock_conversation(user, conversation_id)
    assert conversation.branch is not None
    shown = visible_messages(conversation.branch)
    # Stop at the question whose answer is being written: later messages may still swap positions with the answer.
    answer = (
        shown.filter(status=Message.Status.STREAMING).select_related("parent").order_by("position").first()
    )
    if answer is not None:
        shown = shown.filter(position__lte=answer.parent.position if answer.parent else answer.position - 1)
    last = shown.aggregate(last=Max("position"))["last"]
    row, is_new = SharedConversation.objects.update_or_create(
        conversation=conversation,
        defaults={
            "branch": conversation.branch,
            "last_position": -1 if last is None else last,
            "title": conversation.title,
            "title_made_of": conversation.title_made_of,
            "created_at": now,
            "expires_at": expires_at,
        },
    )
    record_created_id(row.pk)
    return row, is_new


@transaction.atomic
def revoke_share(*, row: SharedConversation) -> None:
    """Make the link invalid for good. Sharing again creates another link."""
    row.delete()


def forget_titles(work: Work) -> None:
    """Blank titles that repeat or derive from forgotten text, in the transaction that forgets it."""
    for row in SharedConversation.objects.filter(conversation__in=list(work.conversations)):
        changed = [each for each in work.changed.values() if each.conversation_id == row.conversation_id]
        if is_named_after(row.title, row.title_made_of, work.repeats.may_repeat, changed):
            row.title, row.title_made_of = "", None
            row.save(update_fields=["title", "title_made_of"])


@contextmanager
def copied_images(images: Iterable[Attachment], *, user: User) -> Iterator[dict[str, Attachment]]:
    """Yield the user's own copies of these images, by the id of the original; the bytes are stored once. Delete them if
    the block raises.

    Call it outside a transaction: it waits for the lock on the bytes, whose holder may wait for the database. Skip
    images that were deleted meanwhile. Raise TooLarge.
    """
    copies: dict[str, Attachment] = {}
    try:
        for image in images:
            with suppress(NotFound):
                copies[str(image.pk)] = copy_attachment(image, user=user)
        yield copies
    except Exception:
        # Otherwise they count as the user's until the sweep. Images that messages already show stay.
        delete_unused(copies.values())
        raise


def add_images(
    conversation: Conversation,
    *,
    branches: Sequence[Branch],
    copies: Mapping[str, Attachment],
    parts: Mapping[int, Sequence[Mapping[str, Any]]],
) -> None:
    """Add the parts with images to messages of the copy, by position, in the transaction that makes it visible."""
    for message in conversation.messages.filter(position__in=list(parts)):
        images = [copies.get(part.get("file_id", "")) for part in parts[message.position]]
        shown = zip(parts[message.position], images, strict=True)
        message.parts = [
            {**part, "file_id": str(image.pk)} if image else part
            for part, image in shown
            # An image without a copy was deleted meanwhile.
            if image or part["type"] == "text"
        ]
        message.save(update_fields=["parts"])
        message.attachments.set(image for image in images if image)
