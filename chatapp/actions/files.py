"""Every write to attachment rows. Their bytes are `attachments`' concern."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction

from chatapp.models import Attachment, User


@transaction.atomic
def create_attachment(
    *, user: User, name: str, sha256: str, mime_type: str, width: int, height: int, size_bytes: int
) -> Attachment:
    return Attachment.objects.create(
        user=user,
        name=name[:255],
        sha256=sha256,
        mime_type=mime_type,
        width=width,
        height=height,
        size_bytes=size_bytes,
    )


@transaction.atomic
def delete_attachment(attachment: Attachment) -> None:
    Attachment.objects.filter(pk=attachment.pk).delete()


@transaction.atomic
def delete_unused_attachments(*, before: datetime) -> list[str]:
    """Uploads never sent with a message; the hashes whose bytes may now be unused."""
    unused = Attachment.objects.filter(messages=None, created_at__lt=before).select_for_update(of=("self",))
    hashes = list(unused.values_list("sha256", flat=True))
    unused.delete()
    return hashes


def delete_unshared_attachments(message_ids: Iterable[UUID]) -> tuple[str, ...]:
    """Those that no other message shows, in the transaction that empties these; the hashes of their bytes."""
    links = Attachment.messages.through.objects
    here = links.filter(message__in=list(message_ids))
    elsewhere = links.exclude(message__in=list(message_ids)).values("attachment")
    own = Attachment.objects.filter(pk__in=here.values("attachment")).exclude(pk__in=elsewhere)
    hashes = tuple(own.values_list("sha256", flat=True))
    own.delete()
    here.delete()
    return hashes
