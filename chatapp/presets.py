"""Agents as presets: checked against what their maker may choose, and made portable.

Operators may choose everything. Users choose, for themselves, among what everybody has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents.presets import Preset, PresetError, make_preset
from chatapp.actions.agents import AgentValues
from chatapp.actions.hook_actions import check_declared
from chatapp.errors import InvalidInput, NotFound
from chatapp.models import Agent, McpServer, ModelConfig
from chatapp.policies import rules_for
from chatapp.selectors.mcp_servers import servers_by_name
from chatapp.selectors.model_configs import accessible_model, default_model
from chatapp.toolbox import local_tools, tool_names
from memory.errors import PolicyError
from memory.policy import check_user_fields, merge_policies


@dataclass(frozen=True, slots=True)
class CheckedPreset:
    """`notes` says what an import left out, one sentence each."""

    values: AgentValues
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Check:
    """One preset, and for whom. A `lenient` check leaves out what this deployment has not, and notes it."""

    preset: Preset
    is_operator: bool
    is_lenient: bool = False
    notes: list[str] = field(default_factory=list)

    def run(self) -> CheckedPreset:
        preset = self.preset
        model = self._model()
        values = AgentValues(
            columns={
                "name": " ".join(preset.name.split()),
                "model": model,
                "mode": preset.mode,
                "system_prompt": preset.system_prompt,
                "greeting": preset.greeting,
                "temperature": preset.temperature,
                "timeout_s": self._timeout_s(),
                "tools": self._tools(),
                "uses_memory": preset.uses_memory,
                "context_policy": self._policy(model),
                "hooks": self._hooks(),
            },
            servers=self._servers(),
        )
        if not values.columns["name"]:
            raise _invalid("name", "must not be empty")
        return CheckedPreset(values, tuple(self.notes))

    def _model(self) -> ModelConfig | None:
        if self.preset.model is None:
            return None
        try:
            return accessible_model(self.preset.model)
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
        known = frozenset(local_tools())
        allowed = known if self.is_operator else known & frozenset(settings.DEFAULT_TOOLS)
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
                merge_policies(("agent", policy))
            else:
                check_user_fields(policy, rules_for(model or default_model()).most, "agent")
        except PolicyError as error:
            raise _invalid("context_policy", str(error)) from None
        return policy

    def _hooks(self) -> list[dict[str, Any]]:
        return check_declared(self.preset.hooks, is_operator=self.is_operator, tools=tool_names())

    def _missing(self, place: str, problem: str) -> None:
        if not self.is_lenient:
            raise _invalid(place, problem)
        self.notes.append(f"{problem}; it was left out.")


def _invalid(place: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{place}: {problem}.", details=[{"field": place, "message": problem}])


def check_preset(preset: Preset, *, is_operator: bool, is_import: bool = False) -> CheckedPreset:
    """Raises InvalidInput, which names the field."""
    return _Check(preset, is_operator, is_import).run()


def changed_preset(agent: Agent, changes: Mapping[str, Any]) -> Preset:
    """The preset of this agent with these fields. Raises InvalidInput."""
    try:
        return make_preset({**preset_of(agent).model_dump(mode="json"), **changes})
    except PresetError as error:
        raise _invalid(error.place, error.problem) from None


def preset_of(agent: Agent) -> Preset:
    """Raises InvalidInput for a stored one that is not valid any more."""
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
        raise _invalid(error.place, error.problem) from None
