"""Writes agents, deployment hooks and MCP servers, and loads files that declare agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from agents.agent_file import ADDRESSES, AgentFile, AgentProfile, Brain
from agents.hooks import Hook, write_hooks
from agents.mcp import McpToolFacts
from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.agent_presets.hook_actions import check_hooks
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.agent_presets.selectors import listing_fingerprint
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import encryption, jobs
from chatapp.operations.access import find_row
from chatapp.operations.changeable_settings import current
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.providers.actions import free_name, key_differs, save_model_config
from chatapp.providers.models import ModelConfig


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    agent: Agent
    is_new: bool
    summary_model: ModelConfig | None


def load_agents(*, file: AgentFile, now: datetime, tools: Collection[str] = ()) -> list[LoadedAgent]:
    """Store the agents and hooks of a file, all or none. Agents are found by name, models by address and model id.

    Raise InvalidInput for a hook that names neither an action nor one of the `tools`, and for an MCP server or a
    conversation that does not exist.
    """
    for source, hooks in file.hooks_by_place.items():
        check_hooks(hooks, source, tools)
    with transaction.atomic():
        store_deployment_hooks(hooks=file.hooks)
        for conversation_id, hooks in file.conversations.items():
            _give_hooks(conversation_id, hooks, now)
        return [_load(profile) for profile in file.agents]


def _give_hooks(conversation_id: UUID, hooks: Sequence[Hook], now: datetime) -> None:
    row = Conversation.objects.filter(pk=conversation_id).select_related("user").first()
    if row is None:
        raise InvalidInput(f"conversations: there is no conversation {conversation_id}.")
    update_conversation(user=row.user, conversation_id=str(row.pk), hooks=write_hooks(hooks), now=now)


def _load(profile: AgentProfile) -> LoadedAgent:
    # Before the summary model: where there is only the Demo model, the first one stored becomes the default.
    model = _model_for(profile.brain)
    summary_model = _model_for(profile.summary_brain) if profile.summary_brain else None
    policy = dict(profile.context_policy)
    if summary_model is not None:
        policy["summary_model"] = str(summary_model.pk)
        policy |= _summary_settings(profile.summary_brain)
    values: dict[str, Any] = {
        "model": model,
        "mode": profile.mode,
        "system_prompt": profile.system_prompt,
        "greeting": profile.greeting,
        "temperature": profile.brain.temperature,
        "timeout_s": profile.brain.timeout or profile.timeout_s,
        "context_policy": policy,
        "hooks": write_hooks(profile.hooks),
        "uses_memory": profile.uses_memory,
        "shares_memory": profile.shares_memory,
    }
    if profile.tools is not None:
        values["tools"] = list(profile.tools)
    # A profile that names no tools makes an agent without any, and leaves what an operator gave it.
    agent, is_new = Agent.objects.update_or_create(
        name=profile.name, owner=None, defaults=values, create_defaults={"tools": []} | values
    )
    if profile.mcp_servers is not None:
        agent.mcp_servers.set(_servers(profile.name, profile.mcp_servers))
    return LoadedAgent(agent, is_new, summary_model)


def _summary_settings(brain: Brain | None) -> dict[str, float]:
    """Return how the summary model is asked, as fields of the policy."""
    if brain is None:
        return {}
    fields = {"summary_temperature": brain.temperature, "summary_timeout_s": brain.timeout or None}
    return {name: value for name, value in fields.items() if value is not None}


def _servers(agent: str, names: Sequence[str]) -> list[McpServer]:
    found = {server.name: server for server in McpServer.objects.filter(name__in=names)}
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InvalidInput(f"{agent}: there is no MCP server {missing}.")
    return list(found.values())


def _model_for(brain: Brain) -> ModelConfig:
    """Return the row for this address and model, made where there is none. A key is stored, encrypted."""
    rows = ModelConfig.objects.filter(kind=ModelConfig.Kind.OPENAI, model_id=brain.model)
    # Compared as they are used: an empty address is OpenAI's.
    found = next((row for row in rows if _address_of(row) == brain.base_url), None)
    if found is None:
        found = ModelConfig(name=free_name(brain.model), model_id=brain.model, base_url=brain.base_url)
        return save_model_config(config=found, api_key=brain.api_key)
    # The next start would write the key of the environment again.
    if brain.api_key and not found.from_environment and key_differs(found, brain.api_key):
        save_model_config(config=found, api_key=brain.api_key)
    return found


def _address_of(config: ModelConfig) -> str:
    return config.base_url.rstrip("/") or ADDRESSES["openai"]


@dataclass(frozen=True, slots=True)
class AgentValues:
    """Checked values of an agent: columns by name, and its MCP servers. What is missing stays as it is."""

    columns: Mapping[str, Any]
    servers: Sequence[McpServer] | None = None


def create_agent(*, owner: User | None, values: AgentValues) -> Agent:
    """Store an agent, for everybody where it has no owner. Raise Conflict for a taken name or too many agents."""
    with transaction.atomic():
        if owner is not None:
            # Of two requests at once, each would count without the other.
            User.objects.select_for_update().get(pk=owner.pk)
            most = current("MAX_OWN_AGENTS")
            if Agent.objects.filter(owner=owner).count() >= most:
                raise Conflict(f"You have {most} agents, which is the most; delete one first.")
        with _unique_name(owner.pk if owner else None, values, None):
            agent = Agent.objects.create(owner=owner, **values.columns)
        agent.mcp_servers.set(values.servers or ())
        record_made(agent.pk)
        return agent


def update_agent(*, agent: Agent, change: Callable[[Agent], AgentValues]) -> Agent:
    """Change an agent to what `change` returns for its locked row, and return it.

    Raise what `change` raises, Conflict for a taken name, NotFound.
    """
    with transaction.atomic():
        row = find_row(Agent.objects.select_for_update(), agent.pk)
        values = change(row)
        for name, value in values.columns.items():
            setattr(row, name, value)
        with _unique_name(row.owner_id, values, row):
            row.save(update_fields=list(values.columns))
        if values.servers is not None:
            row.mcp_servers.set(values.servers)
        return row


def delete_agent(*, agent: Agent) -> None:
    """Delete an agent. Its conversations continue without one."""
    agent.delete()


@contextmanager
def _unique_name(owner_id: UUID | None, values: AgentValues, itself: Agent | None) -> Iterator[None]:
    """Raise Conflict where the name is taken, also where another request takes it at the same moment."""
    _check_name_is_free(owner_id, values, itself)
    try:
        # A part of its own: after an error, PostgreSQL answers nothing more in the same one.
        with transaction.atomic():
            yield
    except IntegrityError:
        # Raises Conflict for a name; any other collision is an error of ours.
        _check_name_is_free(owner_id, values, itself)
        raise


def _check_name_is_free(owner_id: UUID | None, values: AgentValues, itself: Agent | None) -> None:
    if "name" not in values.columns:
        return
    same = Agent.objects.filter(owner=owner_id, name=values.columns["name"])
    if (same.exclude(pk=itself.pk) if itself else same).exists():
        raise Conflict("There is an agent of this name already.", code="name_taken")


def save_agent(*, agent: Agent) -> None:
    """Store an agent as an operator edited it."""
    agent.save()


def save_deployment_hook(*, hook: DeploymentHook) -> None:
    """Store a checked hook as an operator edited it."""
    hook.hook_id = hook.declaration["id"]
    hook.save()


def store_deployment_hooks(*, hooks: Sequence[Hook]) -> None:
    """Store hooks by their ids. One that an operator switched off stays off."""
    with transaction.atomic():
        for hook in hooks:
            declaration: dict[str, Any] = hook.model_dump(mode="json", exclude_none=True)
            DeploymentHook.objects.update_or_create(hook_id=hook.id, defaults={"declaration": declaration})


LIST_AGAIN_AFTER = timedelta(minutes=10)


@transaction.atomic
def save_mcp_server(*, server: McpServer, headers: Mapping[str, str] | None = None) -> McpServer:
    """Store a server as an operator edited it, and have its tools listed again. `headers`: None keeps the stored
    ones."""
    if headers is not None:
        server.headers_encrypted = encryption.encrypt(json.dumps(dict(headers)) if headers else "")
    former = McpServer.objects.select_for_update().filter(pk=server.pk).first()
    if former and former.url == server.url:
        # As it is now: it may have been listed or approved while the operator was editing.
        server.tools, server.approved_tools = former.tools, former.approved_tools
        server.listed_at, server.problem = former.listed_at, former.problem
    else:
        # What another server listed must not count as approved for this one.
        server.tools, server.approved_tools, server.listed_at, server.problem = [], [], None, ""
    # So that `claim_listing` lets a worker ask at once.
    server.asked_at = None
    server.save()
    if server.enabled:
        jobs.wake_worker("chatapp.agent_presets.tasks.list_mcp_tools", str(server.pk))
    return server


def claim_listing(*, server_id: UUID, now: datetime) -> bool:
    """Return whether this caller is the one that asks the server now."""
    due = Q(asked_at=None) | Q(asked_at__lt=now - LIST_AGAIN_AFTER)
    return bool(McpServer.objects.filter(due, pk=server_id, enabled=True).update(asked_at=now))


def record_tools(*, server: McpServer, tools: Sequence[McpToolFacts], now: datetime) -> None:
    """Store what the server lists. Its first list is approved with the server; later changes wait for an operator."""
    listed = [asdict(facts) for facts in tools]
    rows = _rows_as_asked(server)
    with transaction.atomic():
        # First, because the next statement sets `listed_at`.
        rows.filter(listed_at=None).update(approved_tools=listed)
        rows.update(tools=listed, listed_at=now, asked_at=now, problem="")


def _rows_as_asked(server: McpServer) -> QuerySet[McpServer]:
    """Return the row of the server, unless it got another address while the former one was asked: what that one lists
    is approved for it alone."""
    return McpServer.objects.filter(pk=server.pk, url=server.url)


def approve_tools(*, server_id: UUID, fingerprint: str) -> bool:
    """Approve the list of this fingerprint. Return False where the server lists something else by now."""
    with transaction.atomic():
        # Locked, so that what is approved is what the fingerprint was made of.
        server = McpServer.objects.select_for_update().filter(pk=server_id).first()
        if server is None or listing_fingerprint(server) != fingerprint:
            return False
        server.approved_tools = server.tools
        server.save(update_fields=["approved_tools"])
    return True


def record_problem(*, server: McpServer, problem: str, now: datetime) -> None:
    """Store why the server did not answer. It keeps its tools: it may be down for a minute only."""
    _rows_as_asked(server).update(problem=problem, asked_at=now)
