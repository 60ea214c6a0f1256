"""Shares conversations, revokes their links, and copies what a link shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.sharing.models import SharedConversation
from chatapp.files.attachments import copy_attachment, delete_unused
from chatapp.files.models import Attachment
from chatapp.forgetting.actions.collecting import Work
from chatapp.forgetting.actions.remaking import is_named_after
from chatapp.operations.errors import NotFound


@transaction.atomic
def share_conversation(
    *, user: User, conversation_id: str, expires_at: datetime | None, now: datetime
) -> tuple[SharedConversation, bool]:
    """Share what the conversation shows now; return the row, and whether it is new. Raise NotFound.

    A conversation that is shared already keeps its link, which shows the new state from then on.
    """
    conversation = lock_conversation(user, conversation_id)
    assert conversation.branch is not None
    shown = visible_messages(conversation.branch)
    # Up to the question of an answer that is being written: what comes behind it may still change places with it.
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
    record_made(row.pk)
    return row, is_new


@transaction.atomic
def revoke_share(*, row: SharedConversation) -> None:
    """Make the link invalid, for good: sharing anew makes another one."""
    row.delete()


def forget_titles(work: Work) -> None:
    """Take away titles that tell of what is forgotten, in the transaction that forgets it."""
    for row in SharedConversation.objects.filter(conversation__in=list(work.conversations)):
        changed = [each for each in work.changed.values() if each.conversation_id == row.conversation_id]
        if is_named_after(row.title, row.title_made_of, work.repeats.are_near, changed):
            row.title, row.title_made_of = "", None
            row.save(update_fields=["title", "title_made_of"])


@contextmanager
def copied_images(images: Iterable[Attachment], *, user: User) -> Iterator[dict[str, Attachment]]:
    """Yield rows of the user's own for these images, by the id of the original; the bytes are stored once. Where what
    is to show them fails, they are deleted.

    Called outside a transaction: it waits for the lock of the bytes, whose holder may wait for the database. Images
    that were deleted meanwhile are left out. Raise TooLarge.
    """
    copies: dict[str, Attachment] = {}
    try:
        for image in images:
            with suppress(NotFound):
                copies[str(image.pk)] = copy_attachment(image, user=user)
        yield copies
    except Exception:
        # Else they count as the user's until the sweep. Not what is shown already: more follows that commit.
        delete_unused(copies.values())
        raise


def add_images(
    conversation: Conversation,
    *,
    branches: Sequence[Branch],
    copies: Mapping[str, Attachment],
    parts: Mapping[int, Sequence[Mapping[str, Any]]],
) -> None:
    """Give messages of a copy their parts with images, by position, in the transaction that shows it."""
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
