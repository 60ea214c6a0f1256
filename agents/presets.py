"""One agent as a value that travels: between people as YAML, between programs as JSON. No addresses, no keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.hooks import Hook
from agents.plan.choosing import WantedMode
from agents.text import UNSTORABLE

MAX_YAML_CHARS = 200_000
MAX_PROMPT_CHARS = 32_000
MAX_HOOKS = 20


class PresetError(ValueError):
    """`place` is the field; `str(error)` names it with what is wrong there."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class Preset(BaseModel):
    """`model` and `mcp_servers` are names; a null in `tools` is the deployment's choice."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, max_length=100)
    model: str | None = Field(None, max_length=200, description="By name; null is the default model.")
    mode: WantedMode = "react"
    system_prompt: str = Field("", max_length=MAX_PROMPT_CHARS)
    greeting: str = Field("", max_length=2_000)
    temperature: float | None = Field(None, ge=0, le=2)
    timeout_s: float = Field(
        0, ge=0, le=86_400, description="Seconds one answer may take; 0 = no limit of its own."
    )
    tools: list[str] | None = Field(
        None, max_length=200, description="Names of `GET /tools`; null is the deployment's choice."
    )
    mcp_servers: list[str] = Field(default_factory=list, max_length=50)
    uses_memory: bool = Field(
        True, description="Whether its answers recall what was said elsewhere, and are remembered."
    )
    context_policy: dict[str, Any] = Field(default_factory=dict)
    hooks: list[Hook] = Field(default_factory=list, max_length=MAX_HOOKS)


class _PlainLoader(yaml.SafeLoader):
    """Without aliases: a few lines of them stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise PresetError("the file", "it uses aliases (*), which are not read here")
        return super().compose_node(parent, index)


def read_preset(text: str) -> Preset:
    """From YAML. Raises PresetError."""
    if len(text) > MAX_YAML_CHARS:
        raise PresetError("the file", f"it has more than {MAX_YAML_CHARS:,} characters")
    try:
        content = yaml.load(text, _PlainLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, PresetError):
            raise
        raise PresetError("the file", "it is not valid YAML") from None
    if not isinstance(content, Mapping):
        raise PresetError("the file", "it is not a YAML mapping with a name")
    return make_preset(_with_string_keys(content))


def make_preset(content: Mapping[str, Any]) -> Preset:
    """Raises PresetError."""
    try:
        return Preset.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise PresetError(".".join(str(step) for step in first["loc"]), first["msg"]) from None


def write_preset(preset: Preset) -> str:
    """YAML that `read_preset` reads back."""
    content = preset.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    written: str = yaml.dump(content, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100)
    return written


class _PlainDumper(yaml.SafeDumper):
    """Texts of several lines stand as such."""


def _write_text(dumper: _PlainDumper, text: str) -> yaml.ScalarNode:
    # The line end U+0085 is read as an ordinary one unless it is escaped.
    style = '"' if "\x85" in text else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_PlainDumper.add_representer(str, _write_text)


def _with_string_keys(value: Any) -> Any:
    """YAML 1.1 reads the key `on` as true. What no database stores is refused."""
    if isinstance(value, Mapping):
        named = {("on" if key is True else str(key)): inner for key, inner in value.items()}
        return {key: _with_string_keys(inner) for key, inner in named.items()}
    if isinstance(value, list):
        return [_with_string_keys(inner) for inner in value]
    if isinstance(value, str) and UNSTORABLE.search(value):
        raise PresetError("the file", "it holds a character that cannot be stored")
    return value
