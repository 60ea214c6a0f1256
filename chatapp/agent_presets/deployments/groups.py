"""Applies a declared group: its retention, and the models and agents that its members may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import Group
from django.db.models import Model

from chatapp.accounts.group_access.models import GroupAccess
from chatapp.agent_presets.deployments.differences import Change, describe_change
from chatapp.agent_presets.deployments.schemas import DeclaredGroup, DeploymentProblem
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import GroupRetention
from chatapp.providers.models import ModelConfig


def change_group(group: Group, declared: DeclaredGroup, place: str, *, is_new: bool) -> list[Change]:
    """Store the declared values of the group and return the changes. Raise DeploymentProblem."""
    given = declared.model_fields_set
    changes = _change_retention(group, declared.retention_days, is_new) if "retention_days" in given else []
    if "models" in given:
        models = {row.name: row for row in ModelConfig.objects.filter(name__in=declared.models)}
        _check_known(declared.models, models, f"{place}.models")
        changes += _change_list(group, "models", models, is_new)
    if "agents" in given:
        agents = {row.name: row for row in Agent.objects.filter(owner=None, name__in=declared.agents)}
        _check_known(declared.agents, agents, f"{place}.agents")
        changes += _change_list(group, "agents", agents, is_new)
    return changes


def _change_retention(group: Group, after: int | None, is_new: bool) -> list[Change]:
    kept = GroupRetention.objects.filter(group=group)
    before = kept.values_list("days", flat=True).first()
    if before == after:
        return []
    if after is None:
        kept.delete()
    else:
        GroupRetention.objects.update_or_create(group=group, defaults={"days": after})
    return [describe_change("retention_days", before, after, is_new=is_new, is_hidden=False)]


def _check_known(names: Sequence[str], found: Mapping[str, object], place: str) -> None:
    for at, name in enumerate(names):
        if name not in found:
            raise DeploymentProblem(f"{place}.{at}", f"there is no {place.rpartition('.')[2][:-1]} {name}")


def _change_list(group: Group, field: str, found: Mapping[str, Model], is_new: bool) -> list[Change]:
    """Restrict the members to these objects; an empty list allows all."""
    access = GroupAccess.objects.filter(group=group).first()
    before = sorted(row.name for row in getattr(access, field).all()) if access else []
    after = sorted(found)
    if before == after:
        return []
    access = access or GroupAccess.objects.create(group=group)
    getattr(access, field).set(found.values())
    return [describe_change(field, before, after, is_new=is_new, is_hidden=False)]
