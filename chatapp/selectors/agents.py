"""Which agents there are."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q, QuerySet

from chatapp.errors import NotFound
from chatapp.models import Agent, User


def visible_agents(user: User) -> QuerySet[Agent]:
    """What this user may choose: enabled ones for everybody, then his own."""
    rows = Agent.objects.filter(Q(owner=None) | Q(owner=user), enabled=True).select_related("model")
    return rows.order_by(F("owner").asc(nulls_first=True), "name")


def accessible_agent(user: User, name_or_id: str) -> Agent:
    """By id or by name, of two with one name the user's own. Raises NotFound, also for a disabled one."""
    rows = visible_agents(user).filter(_is_named(name_or_id))
    agent = rows.order_by(F("owner").asc(nulls_last=True)).first()
    if agent is None:
        raise NotFound("There is no such agent, or it is switched off.", code="agent_not_found")
    return agent


def _is_named(name_or_id: str) -> Q:
    try:
        return Q(pk=UUID(name_or_id)) | Q(name=name_or_id)
    except ValueError:
        return Q(name=name_or_id)
