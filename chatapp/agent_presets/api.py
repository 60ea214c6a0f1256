"""The agents to choose from, and those that users and operators make."""

from __future__ import annotations

from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.http import HttpResponse
from ninja import Router, Status
from pydantic import Field

from agents.plan.choosing import WantedMode
from agents.presets import (
    Greeting,
    Preset,
    PresetError,
    Prompt,
    ServerNames,
    ToolNames,
    read_preset,
    write_preset,
)
from agents.yaml_text import MAX_YAML_CHARS
from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.models import User
from chatapp.agent_presets import schemas
from chatapp.agent_presets.actions import AgentValues, create_agent, delete_agent, update_agent
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.presets import check_changes, check_preset, preset_of
from chatapp.agent_presets.selectors import accessible_agent, visible_agents
from chatapp.context.tools.registry import ToolFacts, list_tools
from chatapp.operations.errors import Forbidden, InvalidInput
from chatapp.operations.http import schemas as http_schemas
from chatapp.operations.http.schemas import Body, Name, PolicyFields
from memory.bounds import MAX_HOOKS, Id, Seconds, Temperature

router = Router(tags=["agents"])

DEFAULT_ID = "default"
DEFAULT = {
    "id": DEFAULT_ID,
    "name": "Default",
    "description": "Talks with the conversation's model, with the built-in instructions.",
    "mode": "react",
    "model": None,
    "greeting": "",
    "is_default": True,
}
YAML = {"schema": {"type": "string"}}
EXPORTED = {"responses": {200: {"content": {"application/yaml": YAML}}}}
IMPORTED = {"requestBody": {"content": {"application/yaml": YAML}}}


class NewAgent(Preset):
    for_everyone: bool = Field(False, description="Not only for yourself; operators may.")


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


@router.get(
    "/agents", auth=allow("chat", "read"), response=http_schemas.answers(ok=http_schemas.Page[schemas.Agent])
)
async def list_agents(request: ApiRequest) -> Any:
    """What you may choose, the default first; it stands for no agent at all."""
    return {"items": await sync_to_async(_agents)(request.auth.user), "next_cursor": None}


def _agents(user: User) -> list[dict[str, Any]]:
    return [DEFAULT, *(_agent(row) for row in visible_agents(user))]


def _agent(row: Agent) -> dict[str, Any]:
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


@router.post("/agents", auth=allow("chat"), response=http_schemas.answers(409, created=schemas.AgentDetails))
async def create(request: ApiRequest, new: NewAgent) -> Any:
    """An agent of your own, among the models and tools that everybody has; an operator's `for_everyone`, too."""
    return Status(201, await sync_to_async(_create)(request.auth, new, new.for_everyone))


def _create(caller: Caller, preset: Preset, for_everyone: bool, *, is_import: bool = False) -> dict[str, Any]:
    if for_everyone and not caller.is_operator:
        raise Forbidden("Only an operator makes agents for everybody.")
    checked = check_preset(preset, is_operator=for_everyone, is_import=is_import)
    row = create_agent(owner=None if for_everyone else caller.user, values=checked.values)
    return _details(caller, row) | {"notes": list(checked.notes)}


@router.post(
    "/agents/import",
    auth=allow("chat"),
    response=http_schemas.answers(409, created=schemas.AgentDetails),
    openapi_extra=IMPORTED,
)
async def import_agent(request: ApiRequest, body: AgentYaml) -> Any:
    """From the YAML of an export: as `{"yaml": …}`, or as a body of type application/yaml. What this deployment has
    not, a model or a tool, is left out and told in `notes`."""
    return Status(201, await sync_to_async(_import)(request.auth, body))


def _import(caller: Caller, body: AgentYaml) -> dict[str, Any]:
    try:
        preset = read_preset(body.yaml)
    except PresetError as error:
        details = [{"field": error.place, "message": error.problem}]
        raise InvalidInput(f"{error}.", details=details) from None
    return _create(caller, preset, body.for_everyone, is_import=True)


@router.get(
    "/agents/{agent_id}",
    auth=allow("chat", "read"),
    response=http_schemas.answers(404, ok=schemas.AgentDetails),
)
async def read(request: ApiRequest, agent_id: str) -> Any:
    return await sync_to_async(_read)(request.auth, agent_id)


def _read(caller: Caller, agent_id: str) -> dict[str, Any]:
    return _details(caller, accessible_agent(caller.user, agent_id))


def _details(caller: Caller, row: Agent) -> dict[str, Any]:
    is_open = _may_change(caller, row)
    inside = {
        "temperature": row.temperature,
        "timeout_s": row.timeout_s,
        "mcp_servers": [server.name for server in row.mcp_servers.all()],
        "system_prompt": row.system_prompt,
        "context_policy": row.context_policy,
        "hooks": row.hooks,
    }
    return _agent(row) | (inside if is_open else dict.fromkeys(inside))


def _may_change(caller: Caller, row: Agent) -> bool:
    return row.owner_id == caller.user.pk or caller.is_operator


def _own(caller: Caller, agent_id: str) -> Agent:
    row = accessible_agent(caller.user, agent_id)
    if not _may_change(caller, row):
        raise Forbidden("An operator made this agent; you can use it, but not change it.")
    return row


@router.patch(
    "/agents/{agent_id}", auth=allow("chat"), response=http_schemas.answers(404, 409, ok=schemas.AgentDetails)
)
async def change(request: ApiRequest, agent_id: str, changes: AgentChanges) -> Any:
    """Only what is sent is changed. What answers are being written goes on as it was."""
    return await sync_to_async(_change)(request.auth, agent_id, changes.model_dump(exclude_unset=True))


def _change(caller: Caller, agent_id: str, changes: dict[str, Any]) -> dict[str, Any]:
    def changed(row: Agent) -> AgentValues:
        return check_changes(row, changes, is_operator=row.owner_id is None)

    return _details(caller, update_agent(agent=_own(caller, agent_id), change=changed))


@router.delete("/agents/{agent_id}", auth=allow("chat"), response=http_schemas.answers(404))
async def delete(request: ApiRequest, agent_id: str) -> Any:
    """Its conversations go on without one."""
    await sync_to_async(_delete)(request.auth, agent_id)
    return Status(204, None)


def _delete(caller: Caller, agent_id: str) -> None:
    delete_agent(agent=_own(caller, agent_id))


@router.get(
    "/agents/{agent_id}/export",
    auth=allow("chat", "read"),
    response=http_schemas.answers(404, ok=None),
    openapi_extra=EXPORTED,
)
async def export(request: ApiRequest, agent_id: str) -> Any:
    """As YAML, without addresses and keys: models and MCP servers are named."""
    return await sync_to_async(_export)(request.auth, agent_id)


def _export(caller: Caller, agent_id: str) -> HttpResponse:
    row = _own(caller, agent_id)
    response = HttpResponse(write_preset(preset_of(row)), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="agent-{row.pk}.yaml"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def chosen_agent(user: User, name_or_id: str | None) -> Agent | None:
    """None for the default one. Raises NotFound."""
    return None if name_or_id in (None, "", DEFAULT_ID) else accessible_agent(user, str(name_or_id))


tools_router = Router(tags=["tools"])


class Traits(http_schemas.Shape):
    timeout_s: float
    is_idempotent: bool = Field(description="Whether it may be called again after a crash.")
    needs_consent: bool = Field(description="Whether you are asked before each call.")
    rights: list[str] = Field(description="What it reaches: memory, conversation, files, web, server.")


class Tool(http_schemas.Shape):
    name: str
    description: str
    parameters: dict[str, Any] = Field(description="A JSON schema.")
    traits: Traits
    server: str | None = Field(description="The MCP server it belongs to; null for a built-in one.")
    enabled: bool = Field(description="Whether this deployment lets it be used.")
    enabled_by_default: bool = Field(description="Whether a conversation without an agent has it.")


@tools_router.get(
    "/tools", auth=allow("chat", "read"), response=http_schemas.answers(ok=http_schemas.Page[Tool])
)
async def tools(request: ApiRequest) -> Any:
    """The tools an agent of yours may have. Those an operator gives to single agents only are not among them."""
    facts = await sync_to_async(list_tools)()
    return {"items": [_tool(each) for each in facts], "next_cursor": None}


def _tool(facts: ToolFacts) -> dict[str, Any]:
    spec, traits = facts.tool.spec, facts.tool.traits
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
        "server": facts.server,
        "enabled": facts.is_on,
        "enabled_by_default": facts.is_on and facts.is_default,
    }
