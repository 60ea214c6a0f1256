"""Reads shared conversations: by conversation for their owner, by link for everybody else.

The tokens of links are signed ids, so that none is stored.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db.models import Q, QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import SPOKEN
from chatapp.features.sharing.models import SharedConversation
from chatapp.files.models import Attachment
from chatapp.operations.database.access import find_row
from chatapp.operations.errors import NotFound

SHOWN_STATUSES = [status for status in Message.Status if status != Message.Status.STREAMING]


def token_of(shared_id: UUID) -> str:
    return _signer().sign(shared_id.hex)


def _signer() -> Signer:
    return Signer(salt="chatapp.features.sharing", sep=".")


def find_share(user: User, conversation_id: str) -> SharedConversation | None:
    """Return the share of a conversation of the user; None if it is not shared. Raise NotFound for the conversation."""
    conversation = accessible_conversation(user, conversation_id)
    return SharedConversation.objects.select_related("branch").filter(conversation=conversation).first()


def own_share(user: User, conversation_id: str) -> SharedConversation:
    """Return the share of a conversation of the user. Raise NotFound if there is none."""
    row = find_share(user, conversation_id)
    if row is None:
        raise NotFound("This conversation is not shared.")
    return row


def shared_conversation(token: str, now: datetime) -> SharedConversation:
    """Return the share of a link. Raise NotFound if it was revoked or has expired, or its chat or user is gone."""
    rows = SharedConversation.objects.select_related("branch", "conversation")
    current = rows.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        # This excludes conversations in the trash or in deletion, which have no user.
        conversation__user__is_active=True,
    )
    try:
        return find_row(current, _signer().unsign(token))
    except (BadSignature, NotFound):
        raise NotFound("This link is not valid, or it was revoked.") from None


def shared_messages(row: SharedConversation) -> QuerySet[Message]:
    """Return the spoken messages of the snapshot, unordered, without tool calls."""
    shown = visible_messages(row.branch).filter(role__in=SPOKEN, status__in=SHOWN_STATUSES)
    return shown.filter(position__lte=row.last_position)


def shared_images(row: SharedConversation) -> QuerySet[Attachment]:
    """Return the images that the snapshot shows."""
    images = Attachment.objects.filter(messages__in=shared_messages(row), mime_type__startswith="image/")
    return images.distinct()


def shared_image(row: SharedConversation, file_id: str) -> Attachment:
    """Return an image that the snapshot shows. Raise NotFound."""
    return find_row(shared_images(row), file_id)
