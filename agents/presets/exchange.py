"""Read and write one agent for exchange: YAML for people, JSON for programs. No addresses, no keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError

from agents.loop.hooks import Hook
from agents.plan.choosing import WantedMode
from agents.presets.yaml_text import PlaceError, YamlError, read_yaml, write_yaml
from memory.bounds import (
    MAX_HOOKS,
    MAX_POLICY_FIELDS,
    MAX_PROMPT_CHARS,
    MAX_QUERY_CHARS,
    MAX_SERVERS,
    MAX_TOOLS,
    Id,
    Seconds,
    Temperature,
)
from memory.strict_types import StrictTypes, first_problem

Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARS)]
Greeting = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
ToolNames = Annotated[list[Id], Field(max_length=MAX_TOOLS)]
ServerNames = Annotated[list[Id], Field(max_length=MAX_SERVERS)]


class PresetError(PlaceError):
    """A preset that is invalid. `place` is the field."""


class Preset(StrictTypes):
    """One agent. `model` and `mcp_servers` are names; null for `tools` means the deployment's choice."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, max_length=100)
    model: Id | None = Field(None, description="By name; null is the default model.")
    mode: WantedMode = "react"
    system_prompt: Prompt = ""
    greeting: Greeting = ""
    temperature: Temperature | None = None
    timeout_s: Seconds = Field(0, description="Seconds one answer may take; 0 = no limit of its own.")
    tools: ToolNames | None = Field(
        None, description="Names of `GET /tools`; null is the deployment's choice."
    )
    mcp_servers: ServerNames = Field(default_factory=list)
    uses_memory: bool = Field(
        True, description="Whether its answers recall what was said elsewhere, and are remembered."
    )
    context_policy: dict[str, Any] = Field(default_factory=dict, max_length=MAX_POLICY_FIELDS)
    hooks: list[Hook] = Field(default_factory=list, max_length=MAX_HOOKS)


def read_preset(text: str) -> Preset:
    """Parse a preset from YAML. Raise PresetError."""
    try:
        content = read_yaml(text)
    except YamlError as error:
        raise PresetError("the file", str(error)) from None
    if not isinstance(content, Mapping):
        raise PresetError("the file", "it is not a YAML mapping with a name")
    return make_preset(content)


def make_preset(content: Mapping[str, Any]) -> Preset:
    """Validate a parsed document as a preset. Raise PresetError."""
    try:
        return Preset.model_validate(content)
    except ValidationError as error:
        raise PresetError(*first_problem(error)) from None


def write_preset(preset: Preset) -> str:
    """Return YAML that `read_preset` can read."""
    return write_yaml(preset.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
