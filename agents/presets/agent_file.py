"""Read a YAML file that declares agents, and hooks of the deployment and of conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field, ValidationError

from agents.loop.hooks import Hook
from agents.plan.choosing import WantedMode
from agents.presets.yaml_text import PlaceError, fill_texts
from memory.bounds import (
    MAX_CHARS,
    MAX_ID_CHARS,
    MAX_PROMPT_CHARS,
    MAX_SERVERS,
    MAX_TOOLS,
    Id,
    Seconds,
    Temperature,
)
from memory.errors import PolicyError
from memory.strict_types import StrictTypes, first_problem
from memory.window.policy import check_written, merge_policies

_ENVIRONMENT = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")
BACKENDS = ("openai_compat", "openai")

ADDRESSES: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""The address of a provider, if the file does not state one."""

_MODES: Mapping[str, WantedMode] = {"plan": "plan", "auto": "auto"}
"""Any other value of a file's `execution.mode` means a single loop."""


class ProfileError(PlaceError):
    """A file that is invalid."""


class _Declared(StrictTypes):
    """A section of the file. Unknown keys are ignored, because the file may also configure other programs."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Brain(_Declared):
    """A model and how to reach it."""

    provider: str = Field("", max_length=MAX_ID_CHARS)
    model: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    backend: str = "openai_compat"
    config: dict[str, Any] = Field(default_factory=dict)
    temperature: Temperature | None = None
    timeout: Seconds | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    summary_brain: Brain | None = None

    @property
    def api_key(self) -> str:
        return str(self.config.get("api_key") or "")

    @property
    def base_url(self) -> str:
        """Return the address; empty if neither the file nor the provider's name determines it."""
        given = str(self.config.get("base_url") or "").rstrip("/")
        return given or ADDRESSES.get(self.provider.lower(), "")


class _AgentDeclaration(_Declared):
    id: str = Field(min_length=1, max_length=100)
    role: str = ""
    brain: Brain
    system_prompt: str = Field("", max_length=MAX_CHARS)
    hooks: list[Hook] = Field(default_factory=list)
    tools: list[Id] | None = Field(None, max_length=MAX_TOOLS)
    mcp_servers: list[Id] | None = Field(None, max_length=MAX_SERVERS)
    memory: bool = True
    shared_memory: bool = False


class _Execution(_Declared):
    mode: str = "conversation"
    greeting: str = Field("", max_length=MAX_PROMPT_CHARS)
    timeout: Seconds = 0.0
    context: dict[str, Any] = Field(default_factory=dict)
    hooks: list[Hook] = Field(default_factory=list)


class _ConversationDeclaration(_Declared):
    id: UUID
    hooks: list[Hook]


class _File(_Declared):
    app: dict[str, Any] = Field(default_factory=dict)
    agents: list[_AgentDeclaration] = Field(default_factory=list)
    execution: _Execution = Field(default_factory=_Execution)
    hooks: list[Hook] = Field(default_factory=list)
    conversations: list[_ConversationDeclaration] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """One agent, with the file's execution settings as defaults for its own."""

    name: str
    system_prompt: str
    greeting: str
    mode: WantedMode
    brain: Brain
    summary_brain: Brain | None
    context_policy: Mapping[str, Any]
    hooks: tuple[Hook, ...]
    timeout_s: float
    tools: tuple[str, ...] | None = None
    mcp_servers: tuple[str, ...] | None = None
    """None, for both: the file does not set it."""
    uses_memory: bool = True
    shares_memory: bool = False


@dataclass(frozen=True, slots=True)
class AgentFile:
    """What one file declares: agents, and hooks of the deployment and of conversations by id."""

    agents: tuple[AgentProfile, ...] = ()
    hooks: tuple[Hook, ...] = ()
    conversations: Mapping[UUID, tuple[Hook, ...]] = field(default_factory=dict)
    hooks_by_place: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    """All lists of hooks, by their place in the file."""


def read_agent_file(content: Any, environment: Mapping[str, str]) -> AgentFile:
    """Return the declarations of a parsed YAML document, with `{{env.NAME}}` replaced. Raise ProfileError."""
    if not isinstance(content, Mapping):
        raise ProfileError("the file", "it is not a YAML mapping with `agents`")
    file = _validated(_File, _fill(content, environment), "")
    if not file.agents and not file.hooks and not file.conversations:
        raise ProfileError("agents", "there are none, and no `hooks` or `conversations` either")
    _refuse_duplicates("agents", [agent.id for agent in file.agents])
    _refuse_duplicates("conversations", [str(one.id) for one in file.conversations])
    hooks_by_place = {place: tuple(hooks) for place, hooks in _hook_lists(file)}
    for place, hooks in hooks_by_place.items():
        _refuse_duplicates(place, [hook.id for hook in hooks])
    profiles = (_profile(agent, f"agents.{at}.brain", file.execution) for at, agent in enumerate(file.agents))
    conversations = {one.id: tuple(one.hooks) for one in file.conversations}
    return AgentFile(tuple(profiles), tuple(file.hooks), conversations, hooks_by_place)


def _hook_lists(file: _File) -> Iterator[tuple[str, Sequence[Hook]]]:
    yield "hooks", file.hooks
    yield "execution.hooks", file.execution.hooks
    for at, agent in enumerate(file.agents):
        yield f"agents.{at}.hooks", agent.hooks
    for at, conversation in enumerate(file.conversations):
        yield f"conversations.{at}.hooks", conversation.hooks


def _profile(agent: _AgentDeclaration, place: str, execution: _Execution) -> AgentProfile:
    # The agent's hooks come last, so that they replace those of the file with the same id.
    nearest = {hook.id: hook for hook in (*execution.hooks, *agent.hooks)}
    summary = (
        agent.brain.summary_brain
        or _summary_brain(agent.brain.context, f"{place}.context")
        or _summary_brain(execution.context, "execution.context")
    )
    _check_brain(agent.brain, place)
    if summary is not None:
        _check_brain(summary, f"{place} (its summary_brain)")
    return AgentProfile(
        name=agent.id,
        system_prompt=agent.system_prompt.strip(),
        greeting=execution.greeting,
        mode=_MODES.get(execution.mode, "react"),
        brain=agent.brain,
        summary_brain=summary,
        context_policy={
            **_policy(execution.context, "execution.context"),
            **_policy(agent.brain.context, f"{place}.context"),
        },
        hooks=tuple(nearest.values()),
        timeout_s=execution.timeout,
        tools=None if agent.tools is None else tuple(agent.tools),
        mcp_servers=None if agent.mcp_servers is None else tuple(agent.mcp_servers),
        uses_memory=agent.memory,
        shares_memory=agent.shared_memory,
    )


def _validated(model: type[Any], value: Any, place: str) -> Any:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        inner, problem = first_problem(error)
        raise ProfileError(".".join(filter(None, (place, inner))) or "the file", problem) from None


def _policy(declared: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the policy under our own field names, so that a later layer overrides every alias of a field."""
    fields = {name: value for name, value in declared.items() if name != "summary_brain"}
    try:
        check_written(place, fields)
        effective = merge_policies((place, fields))
    except PolicyError as error:
        raise ProfileError(f"{place}.{error.field}", error.problem) from None
    values = effective.policy.model_dump(mode="json")
    return {name: values[name] for name, origin in effective.origins.items() if origin == place}


def _summary_brain(declared: Mapping[str, Any], place: str) -> Brain | None:
    given = declared.get("summary_brain")
    brain: Brain | None = _validated(Brain, given, f"{place}.summary_brain") if given else None
    return brain


def _check_brain(brain: Brain, place: str) -> None:
    if brain.backend not in BACKENDS:
        raise ProfileError(f"{place}.backend", f"{brain.backend} is not supported; use openai_compat")
    if not brain.base_url:
        known = ", ".join(ADDRESSES)
        raise ProfileError(f"{place}.config.base_url", f"is missing, and the provider is none of {known}")


def _refuse_duplicates(place: str, ids: list[str]) -> None:
    double = next((name for at, name in enumerate(ids) if name in ids[:at]), None)
    if double is not None:
        raise ProfileError(place, f"there are two with the id {double}")


def _fill(content: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    def fill(text: str, place: str) -> str:
        return _ENVIRONMENT.sub(lambda match: _from_environment(match.group(1), environment, place), text)

    return fill_texts(content, fill, ProfileError)


def _from_environment(name: str, environment: Mapping[str, str], place: str) -> str:
    if name not in environment:
        raise ProfileError(place, f"the environment variable {name} is not set")
    return environment[name]


_READ_KEYS: Mapping[str, frozenset[str]] = {
    "": frozenset(_File.model_fields),
    "app": frozenset({"app_id", "name"}),
    "execution": frozenset(_Execution.model_fields),
    "agents.": frozenset(_AgentDeclaration.model_fields),
    "conversations.": frozenset(_ConversationDeclaration.model_fields),
    "brain": frozenset(Brain.model_fields),
}


def list_ignored(content: Mapping[str, Any]) -> list[str]:
    """Return the unused keys of a document, so that a misspelt one is noticed."""
    found = [*_unused(content, "", "")]
    for name in ("app", "execution"):
        if isinstance(section := content.get(name), Mapping):
            found += _unused(section, name, f"{name}.")
    for at, agent in enumerate(content.get("agents") or []):
        found += _unused(agent, "agents.", f"agents.{at}.")
        found += _unused(agent.get("brain") or {}, "brain", f"agents.{at}.brain.")
    for at, conversation in enumerate(content.get("conversations") or []):
        found += _unused(conversation, "conversations.", f"conversations.{at}.")
    return found


def _unused(section: Mapping[str, Any], section_name: str, prefix: str) -> Iterator[str]:
    return (f"{prefix}{key}" for key in section if key not in _READ_KEYS[section_name])
