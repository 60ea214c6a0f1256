"""Reads which models and agents a user may use, for the page, REST, `/v1`, the socket, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Model

from chatapp.accounts.group_access.models import GroupAccess
from chatapp.operations.caching.editions import cached, cached_for_user


@dataclass(frozen=True, slots=True)
class Allowed:
    """The keys of models and of operators' agents; None means all."""

    models: frozenset[UUID] | None = None
    agents: frozenset[UUID] | None = None


EVERYTHING = Allowed()


def allowed_to(user_id: UUID) -> Allowed:
    """Return the union of what the user's groups allow. Read nothing about the user if no group has a list."""
    lists = cached("group access", _lists)
    found = [lists[group] for group in groups_of(user_id) if group in lists] if lists else ()
    return Allowed(_together(each.models for each in found), _together(each.agents for each in found))


def groups_of(user_id: UUID) -> frozenset[int]:
    """Return the keys of the user's groups, cached until a configuration changes."""
    rows = Group.objects.filter(user=user_id)
    return cached_for_user(user_id, "groups", lambda: frozenset(rows.values_list("pk", flat=True)))


def lists_emptied_without(rows: Iterable[Model]) -> list[GroupAccess]:
    """Return the groups whose list of models or of agents has only rows among these."""
    without = {*rows}
    kept = GroupAccess.objects.select_related("group").prefetch_related("models", "agents")
    return [
        access
        for access in kept
        if any(chosen and chosen <= without for chosen in ({*access.models.all()}, {*access.agents.all()}))
    ]


def _together(lists: Iterable[frozenset[UUID] | None]) -> frozenset[UUID] | None:
    chosen = [each for each in lists if each is not None]
    # A group without a list does not lift the restrictions of the user's other groups.
    return frozenset().union(*chosen) if chosen else None


def _lists() -> Mapping[int, Allowed]:
    """Return the lists by group, for groups that have any."""
    rows = GroupAccess.objects.prefetch_related("models", "agents")
    return {
        row.group_id: allowed
        for row in rows
        if (allowed := Allowed(_keys(row.models.all()), _keys(row.agents.all()))) != EVERYTHING
    }


def _keys(rows: Iterable[object]) -> frozenset[UUID] | None:
    return frozenset(row.pk for row in rows) or None  # type: ignore[attr-defined]  # rows of any table
