"""Chooses the tools of an answer: built-in ones and those of MCP servers, by agent, conversation and rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.module_loading import import_string

from agents.guarded_http import HostRules
from agents.tools.protocol import Right, Tool, ToolCaller
from agents.tools.registry import built_in_tools, by_name
from chatapp.accounts.selectors import time_zone_of
from chatapp.agent_presets.mcp_servers import offered_tools
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.selectors import servers_for_everyone, servers_of
from chatapp.context.policies import agent_of
from chatapp.context.tools.files import AttachedFiles
from chatapp.context.tools.memory import OwnConversation, UserMemory
from chatapp.context.tools.offloads import OwnOffloads
from chatapp.conversations.models import Conversation
from chatapp.long_term.selectors.pauses import is_paused
from chatapp.operations import clock
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.database.threads import retry_on_outage


class UserClock:
    def now(self) -> datetime:
        return clock.now()

    async def time_zone_of(self, caller: ToolCaller) -> str:
        return await retry_on_outage(time_zone_of)(caller.user_id)


class AllowedHosts:
    def rules(self) -> HostRules:
        return HostRules(tuple(current("HTTP_FETCH_HOSTS")), tuple(current("HTTP_FETCH_OWN_HOSTS")))


BUILT_IN: Mapping[str, Tool] = built_in_tools(
    memory=UserMemory(),
    conversation=OwnConversation(),
    files=AttachedFiles(),
    offloads=OwnOffloads(),
    web=AllowedHosts(),
    clock=UserClock(),
)


def tools_for(conversation: Conversation) -> tuple[Tool, ...]:
    """Return the tools for answers in this conversation, in a stable order. Only reads the database."""
    return tools_of(
        agent_of(conversation), uses_memory=conversation.uses_memory and not is_paused(conversation)
    )


def tools_of(agent: Agent | None, *, uses_memory: bool = True) -> tuple[Tool, ...]:
    """Return an agent's own tools, or the deployment's if it chose none. Names without a tool are ignored."""
    rights = deployment_rights()
    if not uses_memory or (agent is not None and not agent.uses_memory):
        rights -= {"memory"}
    names = _names_of(agent)
    built_in = [tool for name, tool in local_tools().items() if name in names]
    of_servers = [tool for server in servers_of(agent) for tool in offered_tools(server)]
    return tuple(tool for tool in (*built_in, *of_servers) if tool.traits.rights <= rights)


def local_tools() -> Mapping[str, Tool]:
    """Return the built-in tools and the operator's own Python tools."""
    return {**BUILT_IN, **by_name(import_string(dotted) for dotted in settings.EXTRA_TOOLS)}


def unknown_default_tools() -> list[str]:
    """Return the names in DEFAULT_TOOLS that match no tool."""
    known = local_tools()
    return [name for name in current("DEFAULT_TOOLS") if name not in known]


def _names_of(agent: Agent | None) -> frozenset[str]:
    """Return an agent's tool names. An agent made by a user has only default tools, even if it was once given
    others."""
    default = frozenset(current("DEFAULT_TOOLS"))
    if agent is None or agent.tools is None:
        return default
    names = frozenset(agent.tools)
    return names if agent.owner_id is None else names & default


def deployment_rights() -> frozenset[Right]:
    """Return the rights of this deployment. The web is closed until an operator allows a host."""
    rights: frozenset[Right] = frozenset({"memory", "conversation", "files", "server"})
    return rights | {"web"} if current("HTTP_FETCH_HOSTS") or current("HTTP_FETCH_OWN_HOSTS") else rights


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """`is_default`: conversations without an agent have the tool. `is_on`: the deployment allows its use."""

    tool: Tool
    is_default: bool
    is_on: bool
    server: str | None = None


def tool_names() -> list[str]:
    """Return the names of all tools that agents may choose."""
    return [facts.tool.spec.name for facts in list_tools()]


def list_tools() -> list[ToolFacts]:
    """Return the tools that agents may choose: the built-in ones, and those of servers available to everyone."""
    rights, default = deployment_rights(), current("DEFAULT_TOOLS")
    built_in = [
        ToolFacts(tool, is_default=name in default, is_on=tool.traits.rights <= rights)
        for name, tool in local_tools().items()
    ]
    of_servers = [
        ToolFacts(tool, is_default=True, is_on=True, server=server.name)
        for server in servers_for_everyone()
        for tool in offered_tools(server)
    ]
    return [*built_in, *of_servers]
