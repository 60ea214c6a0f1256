"""Reads imports, and what was brought along already."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.importing.models import Import, ImportedConversation
from chatapp.files.models import Attachment
from chatapp.operations.access import find_row

SHOWN = 50
WOKEN_AT_ONCE = 20
READ_AT_ONCE = 500


def was_imported(user: User, source_key: str) -> UUID | None:
    """Return the conversation that the user has of it. One that is being deleted still counts."""
    rows = ImportedConversation.objects.filter(user=user, source_key=source_key)
    return rows.values_list("conversation_id", flat=True).first()


def own_conversation(user: User, conversation_id: str) -> UUID | None:
    """Return the id of the user's own conversation that an export of ours names; None where there is none."""
    known = uuid_or_none(conversation_id)
    if known is None:
        return None
    rows = Conversation.objects.filter(user=user, pk=known)
    return rows.values_list("pk", flat=True).first()


def messages_at(conversation_id: UUID, positions: Iterable[int]) -> dict[int, UUID]:
    """Return the ids of messages by position."""
    wanted = sorted(set(positions))
    rows = Message.objects.filter(conversation=conversation_id)
    found: dict[int, UUID] = {}
    for first in range(0, len(wanted), READ_AT_ONCE):
        some = rows.filter(position__in=wanted[first : first + READ_AT_ONCE])
        found.update(some.values_list("position", "pk"))
    return found


def own_messages(conversation_id: UUID, message_ids: Iterable[str]) -> dict[str, UUID]:
    """Return those of the ids that are messages of the conversation."""
    rows = Message.objects.filter(conversation=conversation_id)
    wanted = [known for each in message_ids if (known := uuid_or_none(each)) is not None]
    found: dict[str, UUID] = {}
    for first in range(0, len(wanted), READ_AT_ONCE):
        some = rows.filter(pk__in=wanted[first : first + READ_AT_ONCE])
        found.update((str(pk), pk) for pk in some.values_list("pk", flat=True))
    return found


def unused_file(user: User, sha256: str, name: str, taken: Iterable[UUID]) -> Attachment | None:
    """Return an upload of these bytes under this name that no message shows: an import that was cut short left it."""
    rows = Attachment.objects.filter(user=user, sha256=sha256, name=name, messages=None)
    return rows.exclude(pk__in=list(taken)).first()


def known_bytes(sha256: str) -> Attachment | None:
    """Return an upload of these bytes, of whomever: this service has encoded or read them itself."""
    return Attachment.objects.filter(sha256=sha256).first()


def uuid_or_none(raw: str) -> UUID | None:
    try:
        return UUID(raw)
    except ValueError:
        return None


def accessible_import(user: User, import_id: str | UUID) -> Import:
    """Return an import of the user's own. Raises NotFound."""
    return find_row(Import.objects.filter(user=user), import_id)


def imports_of(user: User) -> list[Import]:
    """Return the newest imports, newest first."""
    return list(Import.objects.filter(user=user).order_by("-created_at", "-pk")[:SHOWN])


def waiting_imports(now: datetime) -> list[UUID]:
    """Return those that nobody is at work on."""
    rows = Import.objects.filter(
        state__in=[Import.State.WAITING, Import.State.RUNNING], lease_expires_at__lt=now
    )
    return list(rows.order_by("lease_expires_at", "pk").values_list("pk", flat=True)[:WOKEN_AT_ONCE])


def is_unfinished(import_id: str) -> bool:
    """Return whether the file of an import is still needed."""
    rows = Import.objects.filter(state__in=[Import.State.WAITING, Import.State.RUNNING])
    return rows.filter(pk=import_id).exists()
