"""Conversations, runs and compactions as operators see them: who, when, how large, how it ended. No content."""

from __future__ import annotations

from django.contrib import admin

from chatapp.admin.viewing import ViewOnlyAdmin
from chatapp.models import Compaction, Conversation, Run


@admin.register(Conversation)
class ConversationAdmin(ViewOnlyAdmin):
    list_display = (
        "id",
        "user",
        "model",
        "message_count",
        "last_activity_at",
        "pinned",
        "archived",
        "temporary",
    )
    list_filter = ("model", "pinned", "archived", "temporary")
    list_select_related = ("user", "model")
    search_fields = ("=id", "user__email")
    search_help_text = "A conversation's id, or a user's e-mail address"
    ordering = ("-last_activity_at",)
    fields = (
        "id",
        "user",
        "model",
        "message_count",
        "last_seq",
        "created_at",
        "last_activity_at",
        "pinned",
        "archived",
        "temporary",
        "context_policy",
        "hooks",
    )

    @admin.display(description="messages", ordering="next_position")
    def message_count(self, conversation: Conversation) -> int:
        return conversation.next_position


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
