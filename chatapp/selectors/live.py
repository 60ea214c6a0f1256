"""How far the logs of watched conversations are."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from chatapp.models import Conversation


def last_seqs(conversation_ids: Iterable[str]) -> dict[UUID, int]:
    return dict(Conversation.objects.filter(pk__in=list(conversation_ids)).values_list("pk", "last_seq"))
