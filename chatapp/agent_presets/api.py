"""API operations on agents and tools, and on the configuration of the deployment."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from ninja import Status

from agents.presets.exchange import Preset, PresetError, read_preset, write_preset
from agents.presets.yaml_text import PlaceError, YamlError, read_yaml
from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.agent_presets import schemas
from chatapp.agent_presets.actions import create_agent, delete_agent, update_agent
from chatapp.agent_presets.deployments.actions import apply_deployment
from chatapp.agent_presets.deployments.schemas import Values, read_deployment
from chatapp.agent_presets.deployments.shapes import DeploymentIn, DeploymentResult, deployment_shape
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.schemas import (
    DEFAULT_AGENT,
    DEFAULT_ID,
    AgentChanges,
    AgentDetails,
    AgentYaml,
    NewAgent,
    Tool,
    agent_details,
    agent_shape,
    tool_shape,
)
from chatapp.agent_presets.selectors import accessible_agent, visible_agents
from chatapp.agent_presets.services import check_changes, check_preset, preset_of
from chatapp.context.preset_choices import CHOICES
from chatapp.context.tools.registry import ToolFacts, list_tools
from chatapp.operations.errors import Forbidden, InvalidInput
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["agents"])

YAML: dict[str, Any] = {
    "schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
}
EXPORTED = {"responses": {200: {"content": {"application/yaml": YAML}}}}
IMPORTED = {"requestBody": {"content": {"application/yaml": YAML}}}


@router.get("/agents", auth=allow("chat", "read"), response=answers(ok=Page[schemas.Agent]))
def list_agents(request: ApiRequest) -> Any:
    """List the agents that you may choose, the default first, which means no agent."""
    agents = [agent_shape(row) for row in visible_agents(request.auth.user)]
    return {"items": [DEFAULT_AGENT, *agents], "next_cursor": None}


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, read(request, made))


@router.post("/agents", auth=allow("chat"), response=answers(409, created=AgentDetails))
@creates(_again, "/agents/{made}")
def create(request: ApiRequest, new: NewAgent) -> Any:
    """Create an agent of your own, with models and tools that are available to everybody. An operator may create one
    for everybody (`for_everyone`)."""
    return Status(201, _create(request.auth, new, new.for_everyone))


def _create(caller: Caller, preset: Preset, for_everyone: bool, *, is_import: bool = False) -> dict[str, Any]:
    if for_everyone and not caller.is_operator:
        raise Forbidden("Only an operator makes agents for everybody.")
    checked = check_preset(
        preset, CHOICES, owner_id=None if for_everyone else caller.user.pk, is_import=is_import
    )
    row = create_agent(owner=None if for_everyone else caller.user, values=checked.values)
    return agent_details(row, may_change=_may_change(caller, row)) | {"notes": list(checked.notes)}


@router.post(
    "/agents/import",
    auth=allow("chat"),
    response=answers(409, created=AgentDetails),
    openapi_extra=IMPORTED,
)
@creates(_again, "/agents/{made}")
def import_agent(request: ApiRequest, body: AgentYaml) -> Any:
    """Import an agent from the YAML of an export: as `{"yaml": …}`, or as a body of type application/yaml. A model or
    tool that this deployment lacks is left out and listed in `notes`."""
    try:
        preset = read_preset(body.yaml)
    except PresetError as error:
        raise InvalidInput.in_field(error.place, error.problem) from None
    return Status(201, _create(request.auth, preset, body.for_everyone, is_import=True))


@router.get(
    "/agents/{agent_id}",
    auth=allow("chat", "read"),
    response=answers(404, ok=AgentDetails),
)
def read(request: ApiRequest, agent_id: str) -> Any:
    row = accessible_agent(request.auth.user, agent_id)
    return agent_details(row, may_change=_may_change(request.auth, row))


def _may_change(caller: Caller, row: Agent) -> bool:
    return row.owner_id == caller.user.pk or caller.is_operator


def _own(caller: Caller, agent_id: str) -> Agent:
    row = accessible_agent(caller.user, agent_id)
    if not _may_change(caller, row):
        raise Forbidden("An operator made this agent; you can use it, but not change it.")
    return row


@router.patch("/agents/{agent_id}", auth=allow("chat"), response=answers(404, 409, ok=AgentDetails))
def change(request: ApiRequest, agent_id: str, changes: AgentChanges) -> Any:
    """Change the fields that are sent. Running answers are not affected."""
    sent = changes.model_dump(exclude_unset=True)
    agent = _own(request.auth, agent_id)
    row = update_agent(agent=agent, change=lambda row: check_changes(row, sent, CHOICES))
    return agent_details(row, may_change=True)


@router.delete("/agents/{agent_id}", auth=allow("chat"), response=answers(404))
def delete(request: ApiRequest, agent_id: str) -> Any:
    """Delete an agent. Its conversations continue without one."""
    delete_agent(agent=_own(request.auth, agent_id))
    return Status(204, None)


@router.get(
    "/agents/{agent_id}/export",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=EXPORTED,
)
def export(request: ApiRequest, agent_id: str) -> Any:
    """Export an agent as YAML, without addresses and keys: models and MCP servers appear by name."""
    row = _own(request.auth, agent_id)
    response = HttpResponse(write_preset(preset_of(row)), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="agent-{row.pk}.yaml"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def chosen_agent(user: User, name_or_id: str | None) -> Agent | None:
    """Return the agent; None for the default one. Raise NotFound."""
    return None if name_or_id in (None, "", DEFAULT_ID) else accessible_agent(user, str(name_or_id))


@router.post(
    "/admin/deployment",
    auth=allow("admin"),
    response=answers(ok=DeploymentResult),
)
def apply(request: ApiRequest, body: DeploymentIn) -> Any:
    """Store models, MCP servers, agents, hooks and groups as declared in one YAML text, all or nothing; for operators.
    What the text does not mention stays. `dry_run` returns the same differences and stores nothing. Applying the text
    again changes nothing. `${NAME}` is replaced by one of `secrets`: the variables of the server are not read."""
    try:
        values = Values(body.secrets, missing="there is no {name} in `secrets`")
        file = read_deployment(read_yaml(body.yaml), values)
        differences = apply_deployment(
            file=file,
            choices=CHOICES,
            is_dry_run=body.dry_run,
            through="API",
            actor_id=request.auth.user.pk,
        )
    except PlaceError as error:
        raise InvalidInput.in_field(error.place, error.problem) from None
    except YamlError as error:
        raise InvalidInput.in_field("yaml", str(error), f"The text: {error}.") from None
    return deployment_shape(differences, is_dry_run=body.dry_run)


tools_router = Router(tags=["tools"])


@tools_router.get("/tools", auth=allow("chat", "read"), response=answers(ok=Page[Tool]))
def tools(request: ApiRequest) -> Any:
    """List the tools that your agents may use, without those that operators give to single agents only."""
    facts = list_tools()
    return {"items": [_tool(each) for each in facts], "next_cursor": None}


def _tool(facts: ToolFacts) -> dict[str, Any]:
    return tool_shape(facts.tool, server=facts.server, is_on=facts.is_on, is_default=facts.is_default)
