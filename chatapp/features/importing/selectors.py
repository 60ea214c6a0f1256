"""Reads imports, and what was brought along already."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.importing.models import Import, ImportedConversation
from chatapp.operations.access import find_row

SHOWN = 50
WOKEN_AT_ONCE = 20


def was_imported(user: User, source_key: str) -> bool:
    """Return whether the user has the conversation. One that is being deleted still counts."""
    return ImportedConversation.objects.filter(user=user, source_key=source_key).exists()


def is_own(user: User, conversation_id: str) -> bool:
    """Return whether the user has the conversation that an export of ours names."""
    try:
        return Conversation.objects.filter(user=user, pk=UUID(conversation_id)).exists()
    except ValueError:
        return False


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
