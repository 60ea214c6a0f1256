"""Estimates what it would cost to summarise and to index what a user imported. Nothing of it is spent unasked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.features.importing.models import ImportedConversation
from chatapp.operations.errors import NotFound
from chatapp.providers.selectors import default_model, fast_model_of

PRICED_TOKENS = 1_000_000


def estimate_costs(user: User) -> dict[str, Any]:
    """Return what the user's imported conversations hold, and what summarising all of them would read; `cost` None:
    the price is not known."""
    imported = ImportedConversation.objects.filter(user=user, conversation__user=user)
    held = Message.objects.filter(conversation__in=imported.values("conversation"))
    counted = held.aggregate(messages=Count("pk"), tokens=Sum("token_estimate", default=0))
    try:
        model = fast_model_of(default_model())
    except NotFound:
        name, price = None, None
    else:
        name, price = model.name, model.input_price
    cost: Decimal | None = None if price is None else price * counted["tokens"] / PRICED_TOKENS
    return {
        "conversations": imported.count(),
        **counted,
        "model": name,
        "cost": None if cost is None else round(float(cost), 4),
        "embedding_tokens": counted["tokens"] if settings.EMBEDDINGS_MODEL else 0,
    }
