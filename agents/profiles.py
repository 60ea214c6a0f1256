"""Agent presets as they are written in YAML: one agent a profile, whatever it was declared in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.hooks import Hook

_ENVIRONMENT = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")


class ProfileError(ValueError):
    """`str(error)` names the place in the file and what is wrong there."""


class _Declared(BaseModel):
    """Unknown keys are kept out of the way: the file may be meant for more than this service reads."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Brain(_Declared):
    """A model and how to reach it."""

    provider: str = ""
    model: str
    backend: str = "openai_compat"
    config: dict[str, Any] = Field(default_factory=dict)
    temperature: float | None = None
    timeout: float | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    summary_brain: Brain | None = None

    @property
    def api_key(self) -> str:
        return str(self.config.get("api_key", ""))

    @property
    def base_url(self) -> str:
        given = str(self.config.get("base_url", "") or "").rstrip("/")
        return given or ADDRESSES.get(self.provider.lower(), "")


class _AgentDeclaration(_Declared):
    id: str = Field(min_length=1, max_length=100)
    role: str = ""
    brain: Brain
    system_prompt: str = ""


class _Execution(_Declared):
    mode: str = "conversation"
    greeting: str = ""
    max_turns: int = Field(0, ge=0)
    timeout: float = Field(0.0, ge=0)
    context: dict[str, Any] = Field(default_factory=dict)
    hooks: list[Hook] = Field(default_factory=list)


class _File(_Declared):
    app: dict[str, Any] = Field(default_factory=dict)
    agents: list[_AgentDeclaration] = Field(min_length=1)
    execution: _Execution = Field(default_factory=_Execution)


ADDRESSES: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Where a provider answers when the file does not say."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """One agent, with the file's execution-level settings merged below its own."""

    name: str
    system_prompt: str
    greeting: str
    mode: Literal["react", "plan"]
    brain: Brain
    summary_brain: Brain | None
    context_policy: Mapping[str, Any]
    hooks: tuple[Hook, ...]
    timeout_s: float


def read_profiles(content: Any, environment: Mapping[str, str]) -> list[AgentProfile]:
    """From a parsed YAML document; `{{env.NAME}}` is filled in. Raises ProfileError."""
    if not isinstance(content, Mapping):
        raise ProfileError("The file is not a YAML mapping with `agents`.")
    try:
        file = _File.model_validate(_fill(content, environment))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ProfileError(f"{where}: {first['msg']}") from None
    return [_profile(agent, file.execution) for agent in file.agents]


def _profile(agent: _AgentDeclaration, execution: _Execution) -> AgentProfile:
    summary = (
        agent.brain.summary_brain or _summary_brain(agent.brain.context) or _summary_brain(execution.context)
    )
    return AgentProfile(
        name=agent.id,
        system_prompt=agent.system_prompt.strip(),
        greeting=execution.greeting,
        mode="plan" if execution.mode == "plan" else "react",
        brain=agent.brain,
        summary_brain=summary,
        context_policy={**_policy(execution.context), **_policy(agent.brain.context)},
        hooks=tuple(execution.hooks),
        timeout_s=execution.timeout,
    )


def _policy(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in declared.items() if name != "summary_brain"}


def _summary_brain(declared: Mapping[str, Any]) -> Brain | None:
    given = declared.get("summary_brain")
    return Brain.model_validate(given) if given else None


def _fill(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _ENVIRONMENT.sub(lambda match: environment.get(match.group(1), ""), value)
    if isinstance(value, Mapping):
        # YAML 1.1 reads the key `on` as true.
        return {("on" if key is True else key): _fill(inner, environment) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, environment) for inner in value]
    return value
