"""Groups of users, and how long the conversations of their members are kept."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group

from chatapp.models import GroupRetention

admin.site.unregister(Group)  # Django's own page, which knows no periods


class RetentionInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic where it runs
    model = GroupRetention
    extra = 1


@admin.register(Group)
class GroupsAdmin(GroupAdmin):
    inlines = (RetentionInline,)
    list_display = ("name", "retention")
