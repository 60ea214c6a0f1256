"""Which agents there are."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from chatapp.errors import NotFound
from chatapp.models import Agent


def visible_agents() -> QuerySet[Agent]:
    """What users may choose: every enabled one, for every user."""
    return Agent.objects.filter(enabled=True).select_related("model")


def accessible_agent(name_or_id: str) -> Agent:
    """By id or by name. Raises NotFound, also for a disabled one."""
    agent = _by_id(name_or_id) or visible_agents().filter(name=name_or_id).first()
    if agent is None:
        raise NotFound("There is no such agent, or it is switched off.", code="agent_not_found")
    return agent


def _by_id(raw: str) -> Agent | None:
    try:
        return visible_agents().filter(pk=UUID(raw)).first()
    except ValueError:
        return None
