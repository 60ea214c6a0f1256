"""Reads imports, what was imported already, and what summarising all of it would cost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, Sum

from agents.types import TokenUsage
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.importing.models import Import, ImportedConversation
from chatapp.files.models import Attachment
from chatapp.forgetting.trash.selectors import trash_of
from chatapp.operations.database.access import find_row, uuid_or_none
from chatapp.operations.errors import NotFound
from chatapp.providers.model_facts import price_call
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model, fast_model_of

SHOWN = 50
WOKEN_AT_ONCE = 20
# SQLite limits the number of values in one statement.
READ_AT_ONCE = 500
PRICED_TOKENS = 1_000
"""Tokens of the priced call. Some models charge more per token in very long calls."""
MILLION = 1_000_000
HAS_FILE = Q(state__in=[Import.State.WAITING, Import.State.RUNNING]) | Q(kept_until__isnull=False)


def known_conversations(user: User, source_keys: Iterable[str]) -> dict[str, UUID]:
    """Return the conversations that the user imported from these sources, by key. Those in the trash or in deletion
    count, too."""
    rows = ImportedConversation.objects.filter(user=user, source_key__in=list(source_keys))
    return dict(rows.values_list("source_key", "conversation_id"))


def own_conversations(user: User, conversation_ids: Iterable[str]) -> dict[str, UUID]:
    """Return the user's conversations that an export of this service references, by id in the export."""
    named = {each: known for each in conversation_ids if (known := uuid_or_none(each)) is not None}
    if not named:
        return {}
    rows = Conversation.objects.filter(user=user, pk__in=named.values())
    here = set(rows.values_list("pk", flat=True))
    return {each: known for each, known in named.items() if known in here}


def trashed_among(user: User, conversation_ids: Iterable[UUID | None], now: datetime) -> set[UUID]:
    """Return which of these conversations the user can restore from the trash."""
    named = [each for each in conversation_ids if each is not None]
    return set(trash_of(user, now).filter(pk__in=named).values_list("pk", flat=True)) if named else set()


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
    """Return the conversation's messages with these ids, by `canonical_id`."""
    rows = Message.objects.filter(conversation=conversation_id)
    wanted = [known for each in message_ids if (known := uuid_or_none(each)) is not None]
    found: dict[str, UUID] = {}
    for first in range(0, len(wanted), READ_AT_ONCE):
        some = rows.filter(pk__in=wanted[first : first + READ_AT_ONCE])
        found.update((str(pk), pk) for pk in some.values_list("pk", flat=True))
    return found


def unused_file(user: User, sha256: str, name: str, taken: Iterable[UUID]) -> Attachment | None:
    """Return an upload of these bytes and name that no message shows, e.g. of an interrupted import."""
    rows = Attachment.objects.filter(user=user, sha256=sha256, name=name, messages=None)
    return rows.exclude(pk__in=list(taken)).first()


def known_bytes(sha256: str) -> Attachment | None:
    """Return any user's upload of these bytes. It shows that this service has encoded or read them itself."""
    return Attachment.objects.filter(sha256=sha256).first()


def accessible_import(user: User, import_id: str | UUID) -> Import:
    """Return an import of the user. Raise NotFound."""
    return find_row(Import.objects.filter(user=user), import_id)


def imports_of(user: User) -> list[Import]:
    """Return the newest imports, newest first."""
    return list(Import.objects.filter(user=user).order_by("-created_at", "-pk")[:SHOWN])


def waiting_imports(now: datetime) -> list[UUID]:
    """Return the imports that no worker has."""
    return list(
        Import.free(now).order_by("lease_expires_at", "pk").values_list("pk", flat=True)[:WOKEN_AT_ONCE]
    )


def forgotten_sources(row: Import) -> frozenset[str] | None:
    """Return the keys of sources that the import must skip; None if this worker has lost the import."""
    held = Import.objects.filter(pk=row.pk, fence=row.fence)
    return next((frozenset(keys or ()) for keys in held.values_list("report__forgotten", flat=True)), None)


def needs_file(import_id: UUID) -> bool:
    """Return whether the file of an import is still needed, or kept for its user."""
    return Import.objects.filter(HAS_FILE, pk=import_id).exists()


def file_bytes_of(user: User) -> int:
    """Return the total size of the user's import files, including the parts still to come."""
    sizes = Import.objects.filter(HAS_FILE, user=user).aggregate(size=Sum("size_bytes", default=0))
    return int(sizes["size"])


def _price_of_input(model: ModelConfig) -> Decimal | None:
    """Return the price of an input token, preferring the operator's; None if it is unknown."""
    entered: Decimal | None = model.input_price
    if entered is not None:
        return entered / MILLION
    price = price_call(model, TokenUsage(PRICED_TOKENS, 0))
    return None if price is None else price / PRICED_TOKENS


def estimate_costs(user: User) -> dict[str, Any]:
    """Return the size of the user's imported conversations and the cost of summarising all of them. `cost` is None if
    the price is unknown."""
    # A conversation in deletion has no user.
    imported = ImportedConversation.objects.filter(user=user, conversation__user=user)
    held = Message.objects.filter(conversation__in=imported.values("conversation"))
    counted = held.aggregate(messages=Count("pk"), tokens=Sum("token_estimate", default=0))
    try:
        model = fast_model_of(default_model())
    except NotFound:
        name, price = None, None
    else:
        name, price = model.name, _price_of_input(model)
    cost: Decimal | None = None if price is None else price * counted["tokens"]
    return {
        "conversations": imported.count(),
        **counted,
        "model": name,
        "cost": None if cost is None else round(float(cost), 4),
        "embedding_tokens": counted["tokens"] if settings.EMBEDDINGS_MODEL else 0,
    }
