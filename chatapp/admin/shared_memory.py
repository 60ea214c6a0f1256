"""What is in the memories that agents share, for operators to read, correct and take out; not who said it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chatapp import clock
from chatapp.forgetting import take_out_of_shared
from chatapp.memory_changes import edit_shared_entry
from chatapp.models import SharedEntry

PREVIEW_CHARS = 120


@admin.register(SharedEntry)
class SharedEntryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """It stays an entry of whoever said it: words that are changed here change there, what is deleted here is shared
    no more, and those who were told it lose it."""

    list_display = ("preview", "scope", "day", "author")
    list_filter = ("scope",)
    list_select_related = ("scope",)
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("text",)
    ordering = ("-created_at", "-pk")
    fields = ("scope", "day", "text", "author", "revision")
    readonly_fields = ("scope", "day", "author", "revision")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SharedEntry]:
        """Closed ones, too: they may be opened again."""
        return super().get_queryset(request).filter(scope__isnull=False, state=SharedEntry.State.KEPT)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="what it says")
    def preview(self, entry: SharedEntry) -> str:
        return entry.text if len(entry.text) <= PREVIEW_CHARS else f"{entry.text[:PREVIEW_CHARS]}…"

    def save_model(self, request: HttpRequest, obj: SharedEntry, form: Any, change: bool) -> None:
        edit_shared_entry(entry_id=obj.pk, text=form.cleaned_data["text"])

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The entry leaves the shared memory; its rows stay its user's."""
        perms = set() if self.has_delete_permission(request) else {SharedEntry._meta.verbose_name}
        return [str(entry) for entry in objs], {SharedEntry._meta.verbose_name_plural: len(objs)}, perms, []

    def delete_model(self, request: HttpRequest, obj: SharedEntry) -> None:
        take_out_of_shared(obj.pk, now=clock.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SharedEntry]) -> None:
        for entry in queryset:
            self.delete_model(request, entry)
