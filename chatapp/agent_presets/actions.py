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

from agents.loop.hooks import Hook, write_hooks
from agents.presets.agent_file import ADDRESSES, AgentFile, AgentProfile, Brain
from agents.tools.mcp import McpToolFacts
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.agent_presets.hook_actions import check_hooks
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.agent_presets.selectors import listing_fingerprint
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import encryption
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.database.access import find_row
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.workers import jobs
from chatapp.providers.actions import free_name, key_differs, save_model_config
from chatapp.providers.models import ModelConfig


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    agent: Agent
    is_new: bool
    summary_model: ModelConfig | None


def load_agents(*, file: AgentFile, now: datetime, tools: Collection[str] = ()) -> list[LoadedAgent]:
    """Store the agents and hooks of a file, all or none. Find agents by name, models by address and model id.

    Raise InvalidInput for a hook that names neither an action nor one of the `tools`, and for an MCP server or a
    conversation that does not exist.
    """
    for source, hooks in file.hooks_by_place.items():
        check_hooks(hooks, source, tools)
    with transaction.atomic():
        for hook in file.hooks:
            # A hook that an operator switched off stays off.
            declaration: dict[str, Any] = hook.model_dump(mode="json", exclude_none=True)
            DeploymentHook.objects.update_or_create(hook_id=hook.id, defaults={"declaration": declaration})
        for conversation_id, hooks in file.conversations.items():
            _give_hooks(conversation_id, hooks, now)
        return [_load(profile) for profile in file.agents]


def _give_hooks(conversation_id: UUID, hooks: Sequence[Hook], now: datetime) -> None:
    row = Conversation.objects.filter(pk=conversation_id).select_related("user").first()
    if row is None:
        raise InvalidInput(f"conversations: there is no conversation {conversation_id}.")
    update_conversation(user=row.user, conversation_id=str(row.pk), hooks=write_hooks(hooks), now=now)


def _load(profile: AgentProfile) -> LoadedAgent:
    # Load the main model first: if only the Demo model exists, the first one stored becomes the default.
    model = _model_for(profile.brain)
    summary_model = None
    policy = dict(profile.context_policy)
    if brain := profile.summary_brain:
        summary_model = _model_for(brain)
        settings = {"summary_temperature": brain.temperature, "summary_timeout_s": brain.timeout or None}
        policy["summary_model"] = str(summary_model.pk)
        policy |= {name: value for name, value in settings.items() if value is not None}
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
    # A profile without tools creates an agent without tools, but keeps the tools of an existing agent.
    agent, is_new = Agent.objects.update_or_create(
        name=profile.name, owner=None, defaults=values, create_defaults={"tools": []} | values
    )
    if profile.mcp_servers is not None:
        agent.mcp_servers.set(_servers(profile.name, profile.mcp_servers))
    return LoadedAgent(agent, is_new, summary_model)


def _servers(agent: str, names: Sequence[str]) -> list[McpServer]:
    found = {server.name: server for server in McpServer.objects.filter(name__in=names)}
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InvalidInput(f"{agent}: there is no MCP server {missing}.")
    return list(found.values())


def _model_for(brain: Brain) -> ModelConfig:
    """Return the row for this address and model, created if it is missing. Store the key, encrypted."""
    rows = ModelConfig.objects.filter(kind=ModelConfig.Kind.OPENAI, model_id=brain.model)
    # Compare the effective addresses: an empty one means OpenAI's.
    found = next((row for row in rows if _address_of(row) == brain.base_url), None)
    if found is None:
        found = ModelConfig(name=free_name(brain.model), model_id=brain.model, base_url=brain.base_url)
        return save_model_config(config=found, api_key=brain.api_key)
    # Skip rows of the environment, because the next start would restore their key.
    if brain.api_key and not found.from_environment and key_differs(found, brain.api_key):
        save_model_config(config=found, api_key=brain.api_key)
    return found


def _address_of(config: ModelConfig) -> str:
    return config.base_url.rstrip("/") or ADDRESSES["openai"]


@dataclass(frozen=True, slots=True)
class AgentValues:
    """Checked values of an agent: columns by name, and its MCP servers. Missing values stay unchanged."""

    columns: Mapping[str, Any]
    servers: Sequence[McpServer] | None = None


def create_agent(*, owner: User | None, values: AgentValues) -> Agent:
    """Store an agent, for everybody if it has no owner. Raise Conflict for a taken name or too many agents."""
    with transaction.atomic():
        if owner is not None:
            # Lock the user, or two concurrent requests would each count without the other.
            User.objects.select_for_update().get(pk=owner.pk)
            most = current("MAX_OWN_AGENTS")
            if Agent.objects.filter(owner=owner).count() >= most:
                raise Conflict(f"You have {most} agents, which is the maximum; delete one first.")
        with _unique_name(owner.pk if owner else None, values, None):
            agent = Agent.objects.create(owner=owner, **values.columns)
        agent.mcp_servers.set(values.servers or ())
        record_created_id(agent.pk)
        return agent


def update_agent(*, agent: Agent, change: Callable[[Agent], AgentValues]) -> Agent:
    """Change an agent to the values that `change` returns for its locked row, and return the row.

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
    """Raise Conflict if the name is taken, also if a concurrent request takes it."""
    _check_name_is_free(owner_id, values, itself)
    try:
        # Use a savepoint: after an error, PostgreSQL executes nothing more in the same transaction.
        with transaction.atomic():
            yield
    except IntegrityError:
        # This raises Conflict for a taken name; any other violation is a bug.
        _check_name_is_free(owner_id, values, itself)
        raise


def _check_name_is_free(owner_id: UUID | None, values: AgentValues, itself: Agent | None) -> None:
    if "name" not in values.columns:
        return
    same = Agent.objects.filter(owner=owner_id, name=values.columns["name"])
    if (same.exclude(pk=itself.pk) if itself else same).exists():
        raise Conflict("There is an agent of this name already.", code="name_taken")


def save_deployment_hook(*, hook: DeploymentHook) -> None:
    """Store a checked hook as an operator edited it."""
    hook.hook_id = hook.declaration["id"]
    hook.save()


LIST_AGAIN_AFTER = timedelta(minutes=10)


@transaction.atomic
def save_mcp_server(*, server: McpServer, headers: Mapping[str, str] | None = None) -> None:
    """Store a server as an operator edited it, and list its tools again. `headers`: None keeps the stored ones."""
    if headers is not None:
        server.headers_encrypted = encryption.encrypt(json.dumps(dict(headers)) if headers else "")
    former = McpServer.objects.select_for_update().filter(pk=server.pk).first()
    if former and former.url == server.url:
        # Copy the stored lists: tools may have been listed or approved while the operator was editing.
        server.tools, server.approved_tools = former.tools, former.approved_tools
        server.listed_at, server.problem = former.listed_at, former.problem
    else:
        # The tools of another server must not count as approved for this one.
        server.tools, server.approved_tools, server.listed_at, server.problem = [], [], None, ""
    # This lets a worker claim the listing at once.
    server.asked_at = None
    server.save()
    if server.enabled:
        jobs.wake_worker("chatapp.agent_presets.tasks.list_mcp_tools", str(server.pk))


def claim_listing(*, server_id: UUID, now: datetime) -> bool:
    """Return whether the caller may query the server now: only one may within `LIST_AGAIN_AFTER`."""
    due = Q(asked_at=None) | Q(asked_at__lt=now - LIST_AGAIN_AFTER)
    return bool(McpServer.objects.filter(due, pk=server_id, enabled=True).update(asked_at=now))


def record_tools(*, server: McpServer, tools: Sequence[McpToolFacts], now: datetime) -> None:
    """Store the listed tools. The first list is approved with the server; later changes wait for an operator."""
    listed = [asdict(facts) for facts in tools]
    rows = _rows_as_asked(server)
    with transaction.atomic():
        # Do this first, because the next statement sets `listed_at`.
        rows.filter(listed_at=None).update(approved_tools=listed)
        rows.update(tools=listed, listed_at=now, asked_at=now, problem="")


def _rows_as_asked(server: McpServer) -> QuerySet[McpServer]:
    """Return the server's row, unless its address changed while the former one was queried: the answer applies to the
    former address only."""
    return McpServer.objects.filter(pk=server.pk, url=server.url)


def approve_tools(*, server_id: UUID, fingerprint: str) -> bool:
    """Approve the list with this fingerprint. Return False if the server lists something else by now."""
    with transaction.atomic():
        # Lock the row, so that the approved list is the one with the fingerprint.
        server = McpServer.objects.select_for_update().filter(pk=server_id).first()
        if server is None or listing_fingerprint(server) != fingerprint:
            return False
        server.approved_tools = server.tools
        server.save(update_fields=["approved_tools"])
    return True


def record_problem(*, server: McpServer, problem: str, now: datetime) -> None:
    """Store why the server did not respond. Keep its tools, as the outage may be short."""
    _rows_as_asked(server).update(problem=problem, asked_at=now)
