"""API schemas of a deployment, and of the changes that applying it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from agents.presets.yaml_text import MAX_YAML_CHARS
from chatapp.agent_presets.deployments.differences import Difference, SectionDifference
from chatapp.operations.http.schemas import Body, Shape

Secret = Annotated[str, Field(min_length=1, max_length=10_000)]
SecretName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=100)]


class DeploymentIn(Body):
    yaml: str = Field(min_length=1, max_length=MAX_YAML_CHARS)
    secrets: dict[SecretName, Secret] = Field(
        default={},
        max_length=100,
        json_schema_extra={"additionalProperties": False},
        description="The values of `${NAME}` and `api_key_env`. They are never returned.",
    )
    dry_run: bool = False


class FieldChange(Shape):
    field: str
    before: str | None = Field(
        description="The value as text, shortened; null for a new object and for a secret."
    )
    after: str


class ThingChange(Shape):
    name: str
    state: Literal["created", "changed", "unchanged"]
    changes: list[FieldChange]


class SectionChange(Shape):
    section: str
    things: list[ThingChange]
    left: list[str] = Field(description="Objects that the text does not mention; they stay unchanged.")


class DeploymentResult(Shape):
    dry_run: bool
    created: int
    changed: int
    unchanged: int
    sections: list[SectionChange]


def deployment_shape(differences: Sequence[SectionDifference], *, is_dry_run: bool) -> dict[str, Any]:
    states = [thing.state for section in differences for thing in section.things]
    return {
        "dry_run": is_dry_run,
        **{state: states.count(state) for state in ("created", "changed", "unchanged")},
        "sections": [
            {
                "section": section.section,
                "things": [_thing(thing) for thing in section.things],
                "left": list(section.left),
            }
            for section in differences
        ],
    }


def _thing(thing: Difference) -> dict[str, Any]:
    return {"name": thing.name, "state": thing.state, "changes": [asdict(each) for each in thing.changes]}
