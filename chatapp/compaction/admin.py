"""Compactions as operators see them: when, how many messages and tokens. No content, and nothing to change."""

from __future__ import annotations

from django.contrib import admin

from chatapp.compaction.models import Compaction
from chatapp.operations.admin.pages import ViewOnlyAdmin


@admin.register(Compaction)
class CompactionAdmin(ViewOnlyAdmin):
    list_display = (
        "id",
        "conversation_id",
        "model",
        "status",
        "strategy",
        "message_count",
        "tokens_before",
        "tokens_after",
        "created_at",
    )
    list_filter = ("status", "strategy", "model", "created_at")
    list_select_related = ("model",)
    search_fields = ("=id", "=conversation__id", "conversation__user__email")
    search_help_text = "The id of a compaction or a conversation, or a user's e-mail address"
    ordering = ("-created_at",)
    fields = (
        "id",
        "conversation_id",
        "model",
        "status",
        "strategy",
        "first_position",
        "last_position",
        "message_count",
        "kept_count",
        "summary_tokens",
        "fallback_reason",
        "error",
        "tokens_before",
        "tokens_after",
        "usage",
        "holder",
        "fence",
        "lease_expires_at",
        "created_at",
        "finished_at",
    )
