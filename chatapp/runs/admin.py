"""Read-only pages of runs for operators: who, when and how they ended. They show no content."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chatapp.operations.admin.pages import ViewOnlyAdmin, WordFilter
from chatapp.operations.translations import translate_sentence
from chatapp.runs.models import Run


@admin.register(Run)
class RunAdmin(ViewOnlyAdmin):
    list_display = (
        "id",
        "conversation_key",
        "user",
        "model",
        "status",
        "failure",
        "created_at",
        "duration",
    )
    list_filter = ("status", ("error_category", WordFilter), "model", "created_at")
    list_select_related = ("user", "model")
    search_fields = ("=id", "=conversation__id", "user__email")
    search_help_text = _("The id of a run or a conversation, or a user's email address")
    ordering = ("-created_at",)
    fields = (
        "id",
        "conversation_key",
        "user",
        "model",
        "mode_wanted",
        "status",
        "failure",
        "told",
        "holder",
        "fence",
        "lease_expires_at",
        "stop_requested",
        "usage",
        "created_at",
        "started_at",
        "finished_at",
    )

    @admin.display(description=_("conversation"), ordering="conversation_id")
    def conversation_key(self, run: Run) -> str:
        return str(run.conversation_id)

    @admin.display(description=_("error category"), ordering="error_category")
    def failure(self, run: Run) -> str:
        return translate_sentence(run.error_category)

    @admin.display(description=_("error message"))
    def told(self, run: Run) -> str:
        return translate_sentence(run.error_message)

    @admin.display(description=_("mode"))
    def mode_wanted(self, run: Run) -> str:
        return translate_sentence(run.mode)

    @admin.display(description=_("seconds"))
    def duration(self, run: Run) -> str:
        if run.started_at is None or run.finished_at is None:
            return "–"
        return f"{(run.finished_at - run.started_at).total_seconds():.1f}"
