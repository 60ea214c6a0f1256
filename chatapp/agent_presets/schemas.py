"""API schemas of agents and tools, and the functions that build responses from rows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agents.plan.choosing import WantedMode
from agents.presets.exchange import Greeting, Preset, Prompt, ServerNames, ToolNames
from agents.presets.yaml_text import MAX_YAML_CHARS
from agents.tools.protocol import Tool as AgentTool
from chatapp.agent_presets import models
from chatapp.operations.http.schemas import Body, Name, PolicyFields, Shape
from memory.bounds import MAX_HOOKS, Id, Seconds, Temperature

DEFAULT_ID = "default"
DEFAULT_AGENT = {
    "id": DEFAULT_ID,
    "name": "Default",
    "description": "Talks with the conversation's model, with the built-in instructions.",
    "mode": "react",
    "model": None,
    "greeting": "",
    "is_default": True,
}


class NewAgent(Preset):
    for_everyone: bool = Field(False, description="Make it available to everybody; only operators may.")


class AgentChanges(Body):
    """The fields of a new agent, each of them optional."""

    name: Name | None = None
    model: Id | None = None
    mode: WantedMode | None = None
    system_prompt: Prompt | None = None
    greeting: Greeting | None = None
    temperature: Temperature | None = None
    timeout_s: Seconds | None = None
    tools: ToolNames | None = None
    mcp_servers: ServerNames | None = None
    uses_memory: bool | None = None
    context_policy: PolicyFields | None = None
    hooks: Annotated[list[dict[str, Any]], Field(max_length=MAX_HOOKS)] | None = None


class AgentYaml(Body):
    yaml: Annotated[str, Field(max_length=MAX_YAML_CHARS)]
    for_everyone: bool = False


class Agent(Shape):
    id: str
    name: str
    mode: str
    model: str | None
    greeting: str
    is_default: bool
    is_mine: bool = Field(False, description="Whether you made it for yourself.")
    uses_memory: bool = True
    shares_memory: bool = Field(
        False,
        description="Whether memories of your chats with it are shared with all its users. Such chats know nothing"
        " private about you.",
    )
    tools: list[str] | None = Field(None, description="By name; null is the deployment's choice.")


class AgentDetails(Agent):
    """An agent with its instructions and settings, which are null unless you may change the agent."""

    temperature: float | None
    timeout_s: float | None
    mcp_servers: list[str] | None
    system_prompt: str | None
    context_policy: dict[str, Any] | None
    hooks: list[dict[str, Any]] | None
    notes: list[str] = Field(
        [], description="What an import left out because this deployment does not have it."
    )


def agent_shape(row: models.Agent) -> dict[str, Any]:
    """Return the fields that everybody who may choose the agent can see."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "mode": row.mode,
        "model": row.model.name if row.model else None,
        "greeting": row.greeting,
        "is_default": False,
        "is_mine": row.owner_id is not None,
        "uses_memory": row.uses_memory,
        "shares_memory": row.shares_memory,
        "tools": row.tools,
    }


def agent_details(row: models.Agent, *, may_change: bool) -> dict[str, Any]:
    """Return the agent with all its fields; those that only its editors see are None for others."""
    fields = {
        "temperature": row.temperature,
        "timeout_s": row.timeout_s,
        "mcp_servers": [server.name for server in row.mcp_servers.all()],
        "system_prompt": row.system_prompt,
        "context_policy": row.context_policy,
        "hooks": row.hooks,
    }
    return agent_shape(row) | (fields if may_change else dict.fromkeys(fields))


class Traits(Shape):
    timeout_s: float
    is_idempotent: bool = Field(description="Whether it may be called again after a crash.")
    needs_consent: bool = Field(description="Whether you are asked before each call.")
    rights: list[str] = Field(description="What it reaches: memory, conversation, files, web, server.")


class Tool(Shape):
    name: str
    description: str
    parameters: dict[str, Any] = Field(description="A JSON schema.")
    traits: Traits
    server: str | None = Field(description="The MCP server it belongs to; null for a built-in one.")
    enabled: bool = Field(description="Whether this deployment lets it be used.")
    enabled_by_default: bool = Field(description="Whether a conversation without an agent has it.")


def tool_shape(tool: AgentTool, *, server: str | None, is_on: bool, is_default: bool) -> dict[str, Any]:
    """Return a tool as an API response. `server` is its MCP server, None for a built-in tool."""
    spec, traits = tool.spec, tool.traits
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "traits": {
            "timeout_s": traits.timeout_s,
            "is_idempotent": traits.is_idempotent,
            "needs_consent": traits.needs_consent,
            "rights": sorted(traits.rights),
        },
        "server": server,
        "enabled": is_on,
        "enabled_by_default": is_on and is_default,
    }
