"""Reads agents, deployment hooks and MCP servers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from agents.tools.mcp import McpToolFacts, changed_tools
from chatapp.accounts.group_access.selectors import allowed_to
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.operations.caching.editions import cached
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.errors import NotFound


def visible_agents(user: User) -> QuerySet[Agent]:
    """Return the enabled agents this user may choose: operators' agents that the groups allow, then the user's own."""
    allowed = allowed_to(user.pk).agents
    of_operators = Q(owner=None) if allowed is None else Q(owner=None, pk__in=allowed)
    rows = Agent.objects.filter(of_operators | Q(owner=user), enabled=True).select_related("model")
    return rows.order_by(F("owner").asc(nulls_first=True), "name")


def usable_agent(agent: Agent | None, user_id: UUID) -> Agent | None:
    """Return the agent; None if it is disabled, or if the user's groups do not allow it any more."""
    if agent is None or not agent.enabled:
        return None
    allowed = allowed_to(user_id).agents if agent.owner_id is None else None
    return agent if allowed is None or agent.pk in allowed else None


def accessible_agent(user: User, name_or_id: str) -> Agent:
    """Return an agent by id or name, preferring the user's own. Raise NotFound, also for a disabled one."""
    # No row has the id None.
    rows = visible_agents(user).filter(Q(pk=uuid_or_none(name_or_id)) | Q(name=name_or_id))
    agent = rows.order_by(F("owner").asc(nulls_last=True)).first()
    if agent is None:
        raise NotFound("This agent does not exist, or it is switched off.", code="agent_not_found")
    return agent


def deployment_hooks() -> list[dict[str, Any]]:
    """Return the declarations of enabled hooks, the oldest first."""
    enabled = DeploymentHook.objects.filter(enabled=True)
    return cached("deployment hooks", lambda: list(enabled.values_list("declaration", flat=True)))


def servers_for_everyone() -> list[McpServer]:
    return list(McpServer.objects.filter(enabled=True, for_everyone=True))


def servers_of(agent: Agent | None) -> list[McpServer]:
    """Return the enabled servers of the agent; if it chose no tools, also those for everyone.

    A user's agent has only servers for everyone.
    """
    servers, named = cached("enabled servers", _enabled_servers)
    own = named.get(agent.pk, frozenset()) if agent is not None else frozenset()
    is_everyones = agent is None or agent.tools is None
    found = [server for server in servers if server.pk in own or (is_everyones and server.for_everyone)]
    if agent is not None and agent.owner_id is not None:
        # A server may have been for everyone when the user chose it, but not any more.
        found = [server for server in found if server.for_everyone]
    return found


def _enabled_servers() -> tuple[list[McpServer], Mapping[UUID, Collection[UUID]]]:
    """Return (the enabled servers, the keys of each agent's servers)."""
    named: dict[UUID, set[UUID]] = defaultdict(set)
    for agent_id, server_id in Agent.mcp_servers.through.objects.values_list("agent_id", "mcpserver_id"):
        named[agent_id].add(server_id)
    return list(McpServer.objects.filter(enabled=True)), named


def servers_by_name(names: Sequence[str], *, only_for_everyone: bool) -> list[McpServer]:
    rows = McpServer.objects.filter(name__in=list(names))
    return list(rows.filter(for_everyone=True, enabled=True) if only_for_everyone else rows)


def listed_facts(server: McpServer) -> list[McpToolFacts]:
    """Return the tools that the server listed last, approved or not."""
    return [McpToolFacts(**facts) for facts in server.tools]


def waiting_tools(server: McpServer) -> tuple[str, ...]:
    """Return the names of the listed tools that are new or changed since an operator approved them."""
    approved = {facts["name"]: McpToolFacts(**facts).fingerprint for facts in server.approved_tools}
    return changed_tools(approved, listed_facts(server))


def listing_fingerprint(server: McpServer) -> str:
    """Return a hash of all tools that the server listed last."""
    return sha256("".join(facts.fingerprint for facts in listed_facts(server)).encode()).hexdigest()


def servers_to_list(before: datetime) -> list[UUID]:
    """Return the ids of enabled servers that were not queried since `before`."""
    due = Q(asked_at=None) | Q(asked_at__lt=before)
    return list(McpServer.objects.filter(due, enabled=True).values_list("pk", flat=True))
