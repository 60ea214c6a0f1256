"""The schema of the file of `manage.py apply`, and which of its values came from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from agents.loop.hooks import Hook
from agents.presets.exchange import Preset, Prompt
from agents.presets.yaml_text import PlaceError, fill_texts
from memory.bounds import MAX_POLICY_FIELDS, MAX_RETENTION_DAYS, MAX_TOOLS, Id, Tokens
from memory.strict_types import StrictTypes

_VARIABLE = re.compile(r"\$(\$?)\{(\w+)\}")
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Price = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=6)]


class DeploymentProblem(PlaceError):
    """Why a file cannot be applied."""


class _Declared(StrictTypes):
    """An object, identified by its name. Fields that are not declared stay unchanged."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class DeclaredModel(_Declared):
    name: _Name
    model_id: _Name = ""
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    context_size: Tokens = 0
    max_output_tokens: Tokens = 0
    input_price: _Price | None = None
    output_price: _Price | None = None
    cached_price: _Price | None = None
    fast_model: Id | None = None
    context_policy: dict[str, Any] = Field(default_factory=dict, max_length=MAX_POLICY_FIELDS)
    system_prompt: Prompt = ""
    tool_calling: Literal["auto", "native", "prompted"] = "auto"
    enabled: bool = True
    # Never false: a model stops being the default when another one becomes the default.
    default: Literal[True] = True


class DeclaredServer(_Declared):
    name: _Name
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict, max_length=50)
    is_own: bool = False
    enabled: bool = True
    for_everyone: bool = False
    tool_filter: list[Id] = Field(default_factory=list, max_length=MAX_TOOLS)
    needs_consent: bool = True
    timeout_s: float = 30.0


class DeclaredAgent(Preset):
    shares_memory: bool = False
    enabled: bool = True


class DeclaredHook(Hook):
    enabled: bool = True


class DeclaredGroup(_Declared):
    name: str = Field(min_length=1, max_length=150)
    retention_days: int | None = Field(None, ge=0, le=MAX_RETENTION_DAYS)
    models: list[Id] = Field(default_factory=list, max_length=1_000)
    agents: list[Id] = Field(default_factory=list, max_length=1_000)


class Deployment(_Declared):
    models: list[DeclaredModel] = []
    mcp_servers: list[DeclaredServer] = []
    agents: list[DeclaredAgent] = []
    hooks: list[DeclaredHook] = []
    groups: list[DeclaredGroup] = []


@dataclass(frozen=True, slots=True)
class DeploymentFile:
    """A parsed file. `filled` contains the places, e.g. `models.0.base_url`, of texts with environment values."""

    declared: Deployment
    filled: frozenset[str]

    def is_filled(self, place: str) -> bool:
        return any(filled == place or filled.startswith(f"{place}.") for filled in self.filled)


@dataclass(frozen=True, slots=True)
class Values:
    """The values of `${NAME}` and `api_key_env`, and the error message for a missing `{name}`."""

    given: Mapping[str, str]
    missing: str = "the environment variable {name} is not set"

    def of(self, name: str, place: str) -> str:
        if not self.given.get(name):
            raise DeploymentProblem(place, self.missing.format(name=name))
        return self.given[name]


def read_deployment(content: Any, values: Values) -> DeploymentFile:
    """Return the declarations in a parsed YAML document, with `${NAME}` filled in. Raise DeploymentProblem.

    `$${NAME}` is an escape for the text `${NAME}`.
    """
    if not isinstance(content, Mapping):
        raise DeploymentProblem("the file", f"it is not a YAML mapping with {_sections()}")
    filled: set[str] = set()

    def fill(text: str, place: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            if match.group(1):
                return match.group(0)[1:]
            filled.add(place)
            return values.of(match.group(2), place)

        return _VARIABLE.sub(value_of, text)

    declared = _validated(fill_texts(content, fill, DeploymentProblem))
    models = [_with_key(model, f"models.{at}", filled, values) for at, model in enumerate(declared.models)]
    _refuse_duplicates(declared)
    return DeploymentFile(declared.model_copy(update={"models": models}), frozenset(filled))


def _validated(content: Any) -> Deployment:
    try:
        return Deployment.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        if first["type"] != "extra_forbidden":
            raise DeploymentProblem(place, first["msg"]) from None
        known = "" if "." in place else f"; there are {_sections()}"
        raise DeploymentProblem(place, f"is not known here{known}") from None


def _sections() -> str:
    return ", ".join(Deployment.model_fields)


def _with_key(model: DeclaredModel, place: str, filled: set[str], values: Values) -> DeclaredModel:
    """Return the model with the key that `api_key_env` names. Refuse a key in plain text."""
    given = model.model_fields_set
    if "api_key" in given and f"{place}.api_key" not in filled:
        raise DeploymentProblem(
            f"{place}.api_key", "keys do not belong in a file; write ${NAME} or api_key_env"
        )
    if "api_key_env" not in given:
        return model
    if "api_key" in given:
        raise DeploymentProblem(f"{place}.api_key_env", "there is api_key as well; write one of them")
    return model.model_copy(update={"api_key": values.of(model.api_key_env, f"{place}.api_key_env")})


def _refuse_duplicates(declared: Deployment) -> None:
    sections: Mapping[str, Sequence[str]] = {
        "models": [each.name for each in declared.models],
        "mcp_servers": [each.name for each in declared.mcp_servers],
        "agents": [each.name for each in declared.agents],
        "hooks": [each.id for each in declared.hooks],
        "groups": [each.name for each in declared.groups],
    }
    for section, names in sections.items():
        for at, name in enumerate(names):
            if name in names[:at]:
                raise DeploymentProblem(f"{section}.{at}", f"there are two with the name {name}")
    defaults = [at for at, model in enumerate(declared.models) if "default" in model.model_fields_set]
    if len(defaults) > 1:
        raise DeploymentProblem(f"models.{defaults[1]}.default", "there is another default before it")
