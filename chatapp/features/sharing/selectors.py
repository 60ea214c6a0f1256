"""Reads shared conversations: for their owner by the conversation, for everybody else by the link.

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
from chatapp.operations.access import find_row
from chatapp.operations.errors import NotFound

SHOWN_STATUSES = [status for status in Message.Status if status != Message.Status.STREAMING]


def token_of(shared_id: UUID) -> str:
    return _signer().sign(shared_id.hex)


def read_token(token: str) -> UUID:
    """Return the id that was signed. Raise NotFound for everything that is no token of ours."""
    try:
        return UUID(_signer().unsign(token))
    except (BadSignature, ValueError):
        raise NotFound("This link is not valid, or it was revoked.") from None


def _signer() -> Signer:
    return Signer(salt="chatapp.features.sharing", sep=".")


def find_share(user: User, conversation_id: str) -> SharedConversation | None:
    """Return how a conversation of the user's is shared; None where it is not. Raise NotFound for the conversation."""
    conversation = accessible_conversation(user, conversation_id)
    return SharedConversation.objects.select_related("branch").filter(conversation=conversation).first()


def own_share(user: User, conversation_id: str) -> SharedConversation:
    """Return how a conversation of the user's is shared. Raise NotFound where it is not."""
    row = find_share(user, conversation_id)
    if row is None:
        raise NotFound("This conversation is not shared.")
    return row


def shared_conversation(token: str, now: datetime) -> SharedConversation:
    """Return what a link shows. Raise NotFound once it was revoked, has expired, or its chat or user is gone."""
    rows = SharedConversation.objects.select_related("branch", "conversation")
    current = rows.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        # Not true of a conversation in the trash or in deletion, which has no user.
        conversation__user__is_active=True,
    )
    try:
        return find_row(current, read_token(token))
    except NotFound:
        raise NotFound("This link is not valid, or it was revoked.") from None


def shared_messages(row: SharedConversation) -> QuerySet[Message]:
    """Return the messages of the snapshot, unordered: what was said, without calls of tools."""
    shown = visible_messages(row.branch).filter(role__in=SPOKEN, status__in=SHOWN_STATUSES)
    return shown.filter(position__lte=row.last_position)


def shared_images(row: SharedConversation) -> QuerySet[Attachment]:
    """Return the images that messages of the snapshot show."""
    images = Attachment.objects.filter(messages__in=shared_messages(row), mime_type__startswith="image/")
    return images.distinct()


def shared_image(row: SharedConversation, file_id: str) -> Attachment:
    """Return one of them. Raise NotFound."""
    return find_row(shared_images(row), file_id)
