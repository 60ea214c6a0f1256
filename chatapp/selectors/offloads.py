"""Reads which offloaded files there are. `access.accessible_offload` is the way to one a user asks for."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from agents.tools.offloaded import CONTEXT_REFERENCE
from chatapp.errors import NotFound
from chatapp.models import Offload
from chatapp.selectors.access import parse_id


def offload_of(conversation_id: UUID | str, reference: str) -> Offload:
    """Of a conversation whose user is known already; CONTEXT_REFERENCE is what left its context. Raises NotFound."""
    rows = Offload.objects.filter(conversation_id=parse_id(conversation_id))
    if reference == CONTEXT_REFERENCE:
        row = rows.filter(kind=Offload.Kind.CONTEXT).first()
    else:
        row = rows.filter(pk=parse_id(reference)).first()
    if row is None:
        raise NotFound("Nothing was offloaded here under this reference.")
    return row


def offloads_of(conversation_id: UUID | str) -> list[Offload]:
    """Of a conversation whose user is known already, oldest first."""
    return list(
        Offload.objects.filter(conversation_id=parse_id(conversation_id)).order_by("created_at", "pk")
    )


def text_offloads(conversation_ids: Iterable[UUID]) -> list[Offload]:
    rows = Offload.objects.filter(conversation__in=list(conversation_ids))
    return list(rows.exclude(kind=Offload.Kind.IMAGE))


def known_offload_names(conversation_id: UUID) -> frozenset[str]:
    """File names; none where the conversation is gone."""
    rows = Offload.objects.filter(conversation_id=conversation_id)
    return frozenset(rows.values_list("name", flat=True))
