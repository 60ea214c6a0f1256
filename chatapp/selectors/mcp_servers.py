"""Which MCP servers serve whom, and which have to be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from chatapp.models import Agent, McpServer


def servers_for_everyone() -> list[McpServer]:
    return list(McpServer.objects.filter(enabled=True, for_everyone=True))


def servers_of(agent: Agent | None) -> list[McpServer]:
    """Those it names; where it chose no tools of its own, those for everyone as well. An agent that a user made has
    none but those for everyone."""
    wanted = Q()
    if agent is None or agent.tools is None:
        wanted |= Q(for_everyone=True)
    if agent is not None:
        wanted |= Q(agents=agent)
    rows = McpServer.objects.filter(wanted, enabled=True)
    if agent is not None and agent.owner_id is not None:
        rows = rows.filter(for_everyone=True)
    return list(rows.distinct())


def servers_by_name(names: Sequence[str], *, only_for_everyone: bool) -> list[McpServer]:
    rows = McpServer.objects.filter(name__in=list(names))
    return list(rows.filter(for_everyone=True, enabled=True) if only_for_everyone else rows)


def servers_to_list(before: datetime) -> list[UUID]:
    """Enabled ones that were not asked since."""
    due = Q(asked_at=None) | Q(asked_at__lt=before)
    return list(McpServer.objects.filter(due, enabled=True).values_list("pk", flat=True))
