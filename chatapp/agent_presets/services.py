"""Checks presets against what their author may choose, and converts agents to presets.

Operators may choose everything. Users may choose, for themselves, what is available to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents.presets.exchange import Preset, PresetError, make_preset, write_preset
from chatapp.accounts.archive import ArchiveFile, safe_file_name
from chatapp.accounts.models import User
from chatapp.agent_presets.actions import AgentValues
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.agent_presets.models import Agent, McpServer
from chatapp.agent_presets.selectors import servers_by_name
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model, default_model
from memory.errors import PolicyError
from memory.window.policy import ContextPolicy, check_user_fields, check_written


@dataclass(frozen=True, slots=True)
class Choices:
    """What this deployment offers to agents; `context.preset_choices` provides it."""

    tool_names: Callable[[], Collection[str]]
    """The tools of this process, without those of MCP servers."""
    hook_tool_names: Callable[[], Collection[str]]
    """All tools, because hooks may call any of them."""
    policy_limits: Callable[[ModelConfig], ContextPolicy]
    """The limits of what users may set with a model."""


@dataclass(frozen=True, slots=True)
class CheckedPreset:
    """A checked preset. `notes` are sentences about what an import left out."""

    values: AgentValues
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Check:
    """The check of one preset. A lenient check leaves out what this deployment does not have, and notes it.

    `agent` is the agent to change, in the `wanted` fields only; None for a new agent.
    """

    preset: Preset
    choices: Choices
    owner_id: UUID | None
    is_lenient: bool = False
    agent: Agent | None = None
    wanted: Collection[str] = frozenset(Preset.model_fields)
    notes: list[str] = field(default_factory=list)

    @property
    def is_operator(self) -> bool:
        return self.owner_id is None

    def run(self) -> CheckedPreset:
        model = self.agent.model if self.agent and "model" not in self.wanted else self._model()
        made = {name: make() for name, make in self._fields(model).items() if name in self.wanted}
        servers = made.pop("mcp_servers", None)
        return CheckedPreset(AgentValues(made, servers), tuple(self.notes))

    def _fields(self, model: ModelConfig | None) -> dict[str, Callable[[], Any]]:
        preset = self.preset
        return {
            "name": self._name,
            "model": lambda: model,
            "mode": lambda: preset.mode,
            "system_prompt": lambda: preset.system_prompt,
            "greeting": lambda: preset.greeting,
            "temperature": lambda: preset.temperature,
            "timeout_s": self._timeout_s,
            "tools": self._tools,
            "uses_memory": lambda: preset.uses_memory,
            "context_policy": lambda: self._policy(model),
            "hooks": self._hooks,
            "mcp_servers": self._servers,
        }

    def _name(self) -> str:
        name = " ".join(self.preset.name.split())
        if not name:
            raise InvalidInput.in_field("name", "must not be empty")
        return name

    def _model(self) -> ModelConfig | None:
        if self.preset.model is None:
            return None
        try:
            return accessible_model(self.owner_id, self.preset.model)
        except NotFound:
            self._missing("model", f"There is no model {self.preset.model} here")
            return None

    def _timeout_s(self) -> float:
        if self.preset.timeout_s and not self.is_operator:
            self._missing("timeout_s", "Only an operator sets a time limit")
            return 0.0
        return self.preset.timeout_s

    def _tools(self) -> list[str] | None:
        if self.preset.tools is None:
            return None
        known = frozenset(self.choices.tool_names())
        allowed = known if self.is_operator else known & frozenset(current("DEFAULT_TOOLS"))
        for name in self.preset.tools:
            if name not in allowed:
                self._missing("tools", f"There is no tool {name} to choose")
        return [name for name in dict.fromkeys(self.preset.tools) if name in allowed]

    def _servers(self) -> Sequence[McpServer]:
        found = servers_by_name(self.preset.mcp_servers, only_for_everyone=not self.is_operator)
        for name in self.preset.mcp_servers:
            if name not in {server.name for server in found}:
                self._missing("mcp_servers", f"There is no MCP server {name} to choose")
        return found

    def _policy(self, model: ModelConfig | None) -> Mapping[str, Any]:
        policy = self.preset.context_policy
        try:
            if self.is_operator:
                check_written("agent", policy)
            else:
                check_user_fields(
                    policy, self.choices.policy_limits(model or default_model(self.owner_id)), "agent"
                )
        except PolicyError as error:
            raise InvalidInput.in_field("context_policy", str(error)) from None
        return policy

    def _hooks(self) -> list[dict[str, Any]]:
        return check_declared(
            self.preset.hooks, is_operator=self.is_operator, tools=self.choices.hook_tool_names()
        )

    def _missing(self, field: str, problem: str) -> None:
        if not self.is_lenient:
            raise InvalidInput.in_field(field, problem)
        self.notes.append(f"{problem}; it was left out.")


def check_preset(
    preset: Preset, choices: Choices, *, owner_id: UUID | None, is_import: bool = False
) -> CheckedPreset:
    """Return the checked values of a new agent, an operator's if it has no owner. Raise InvalidInput, which names the
    field."""
    return _Check(preset, choices, owner_id, is_import).run()


def check_changes(agent: Agent, changes: Mapping[str, Any], choices: Choices) -> AgentValues:
    """Return the values to change. Raise InvalidInput, which names the field.

    Fields that are not sent are not checked: the agent's values may not exist or be allowed any more.
    """
    wanted = set(changes)
    # A preset needs a name.
    content: dict[str, Any] = {"name": agent.name, **changes}
    if "model" in changes:  # the limits of a policy depend on the model
        wanted.add("context_policy")
        content.setdefault("context_policy", agent.context_policy)
    try:
        preset = make_preset(content)
    except PresetError as error:
        raise InvalidInput.in_field(error.place, error.problem) from None
    return _Check(preset, choices, agent.owner_id, agent=agent, wanted=wanted).run().values


def preset_of(agent: Agent) -> Preset:
    """Return the agent as a preset. Raise InvalidInput if a stored value is not valid any more."""
    try:
        return make_preset(
            {
                "name": agent.name,
                "model": agent.model.name if agent.model else None,
                "mode": agent.mode,
                "system_prompt": agent.system_prompt,
                "greeting": agent.greeting,
                "temperature": agent.temperature,
                "timeout_s": agent.timeout_s,
                "tools": agent.tools,
                "mcp_servers": [server.name for server in agent.mcp_servers.all()],
                "uses_memory": agent.uses_memory,
                "context_policy": agent.context_policy,
                "hooks": agent.hooks,
            }
        )
    except PresetError as error:
        raise InvalidInput.in_field(error.place, error.problem) from None


def agent_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the YAML of each agent the user made, for the archive of the account."""
    for agent in Agent.objects.filter(owner=user).select_related("model").order_by("name"):
        name = f"agents/{safe_file_name(agent.name)}-{agent.pk}.yaml"
        try:
            yield name, write_preset(preset_of(agent))
        except InvalidInput as error:  # stored by an earlier version, and not valid any more
            yield f"{name}.txt", f"{error.message}\n\n{agent.system_prompt}\n"
