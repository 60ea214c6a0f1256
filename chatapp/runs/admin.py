"""Runs as operators see them: who, when, how they ended. No content, and nothing to change."""

from __future__ import annotations

from django.contrib import admin

from chatapp.operations.admin.pages import ViewOnlyAdmin
from chatapp.runs.models import Run


@admin.register(Run)
class RunAdmin(ViewOnlyAdmin):
    list_display = (
        "id",
        "conversation_id",
        "user",
        "model",
        "status",
        "error_category",
        "created_at",
        "duration",
    )
    list_filter = ("status", "error_category", "model", "created_at")
    list_select_related = ("user", "model")
    search_fields = ("=id", "=conversation__id", "user__email")
    search_help_text = "The id of a run or a conversation, or a user's e-mail address"
    ordering = ("-created_at",)
    fields = (
        "id",
        "conversation_id",
        "user",
        "model",
        "mode",
        "status",
        "error_category",
        "error_message",
        "holder",
        "fence",
        "lease_expires_at",
        "stop_requested",
        "usage",
        "created_at",
        "started_at",
        "finished_at",
    )

    @admin.display(description="seconds")
    def duration(self, run: Run) -> str:
        if run.started_at is None or run.finished_at is None:
            return "–"
        return f"{(run.finished_at - run.started_at).total_seconds():.1f}"
