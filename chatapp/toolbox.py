"""Which tools an answer may use: the built-in ones and those of MCP servers, by agent, conversation and rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.conf import settings

from agents.tools.protocol import Right, Tool
from agents.tools.registry import Ports, built_in_tools
from chatapp.models import Agent, Conversation
from chatapp.policies import agent_of
from chatapp.tool_ports.clock import UserClock
from chatapp.tool_ports.files import AttachedFiles
from chatapp.tool_ports.memory import OwnConversation, UserMemory
from chatapp.tool_ports.offloads import OwnOffloads
from chatapp.tool_ports.web import AllowedHosts

BUILT_IN: Mapping[str, Tool] = built_in_tools(
    Ports(
        memory=UserMemory(),
        conversation=OwnConversation(),
        files=AttachedFiles(),
        offloads=OwnOffloads(),
        web=AllowedHosts(),
        clock=UserClock(),
    )
)


def tools_for(conversation: Conversation) -> tuple[Tool, ...]:
    """What the answers of this conversation may use, in a stable order. Reads the database only."""
    withheld: frozenset[Right] = frozenset({"memory"}) if conversation.temporary else frozenset()
    return tools_of(agent_of(conversation), withheld)


def tools_of(agent: Agent | None, withheld: frozenset[Right] = frozenset()) -> tuple[Tool, ...]:
    """An agent's own choice, or the deployment's where it made none. A name that means nothing any more is left out."""
    names = settings.DEFAULT_TOOLS if agent is None or agent.tools is None else agent.tools
    rights = deployment_rights() - withheld
    return tuple(tool for tool in _named(names) if tool.traits.rights <= rights)


def deployment_rights() -> frozenset[Right]:
    """The web is closed until an operator names a host."""
    rights: frozenset[Right] = frozenset({"memory", "conversation", "files", "server"})
    return rights | {"web"} if settings.HTTP_FETCH_HOSTS or settings.HTTP_FETCH_OWN_HOSTS else rights


def _named(names: Iterable[str]) -> list[Tool]:
    chosen = frozenset(names)
    return [tool for name, tool in BUILT_IN.items() if name in chosen]
