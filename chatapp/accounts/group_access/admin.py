"""Protects the groups' lists on the admin pages of models and agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from chatapp.accounts.group_access.selectors import lists_emptied_without


class KeepsRestrictions(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at runtime
    """Refuses to delete the last row of a group's list: an empty list would allow its members everything."""

    def get_deleted_objects(self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest) -> Any:
        *found, protected = super().get_deleted_objects(objs, request)
        told = gettext("%(access)s: this is the only item of the list, and an empty list allows everything")
        emptied = [told % {"access": access} for access in lists_emptied_without(objs)]
        return *found, [*protected, *emptied]
