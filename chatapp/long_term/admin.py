"""Admin of shared memories: operators read, correct and remove entries, but do not see who said them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatapp.forgetting.services import take_out_of_shared
from chatapp.long_term.access import lock_shared_entry
from chatapp.long_term.actions.entries import check_revision
from chatapp.long_term.changes import edit_shared_entry
from chatapp.long_term.models import SharedEntry
from chatapp.operations import clock
from chatapp.operations.errors import NotFound, ServiceError
from chatapp.operations.translations import translate_sentence

PREVIEW_CHARS = 120


class SharedEntryForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form that sends back the revision it was opened with, so that it does not restore a text forgotten since."""

    class Meta:
        model = SharedEntry
        fields = ("text", "revision")
        widgets: ClassVar = {"revision": forms.HiddenInput}

    def clean(self) -> dict[str, Any]:
        """Lock the entry for the rest of the view, so that the checked revision is still current when it is saved."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            entry = lock_shared_entry(self.instance.pk)
            if "revision" in cleaned:
                check_revision(entry, cleaned["revision"])
        except ServiceError as error:
            raise ValidationError(translate_sentence(error.message)) from None
        return cleaned


@admin.register(SharedEntry)
class SharedEntryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Entries of shared memories. Each stays an entry of the user who said it, so that a change here changes it there,
    too. Deleting it here only removes it from the shared memory, and from what other users learned of it."""

    form = SharedEntryForm
    list_display = ("preview", "scope", "day", "author")
    list_filter = ("scope",)
    list_select_related = ("scope",)
    list_per_page = 50
    # Otherwise Django counts all rows in addition to those that a search finds.
    show_full_result_count = False
    search_fields = ("text",)
    ordering = ("-created_at", "-pk")
    fields = ("scope", "day", "text", "author", "revision")
    readonly_fields = ("scope", "day", "author")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SharedEntry]:
        """Return kept entries of all shared memories, including closed ones, which may be opened again."""
        return super().get_queryset(request).filter(scope__isnull=False, state=SharedEntry.State.KEPT)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description=_("text"))
    def preview(self, entry: SharedEntry) -> str:
        return entry.text if len(entry.text) <= PREVIEW_CHARS else f"{entry.text[:PREVIEW_CHARS]}…"

    def save_model(self, request: HttpRequest, obj: SharedEntry, form: Any, change: bool) -> None:
        edit_shared_entry(entry_id=obj.pk, **form.cleaned_data)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return only the entries, because they leave the shared memory, but no row is deleted."""
        perms = set() if self.has_delete_permission(request) else {SharedEntry._meta.verbose_name}
        return [str(entry) for entry in objs], {SharedEntry._meta.verbose_name_plural: len(objs)}, perms, []

    def delete_model(self, request: HttpRequest, obj: SharedEntry) -> None:
        with suppress(NotFound):  # it was removed meanwhile
            take_out_of_shared(obj.pk, now=clock.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SharedEntry]) -> None:
        for entry in queryset:
            self.delete_model(request, entry)
