"""Conversations, runs and compactions as operators see them: who, when, how large, how it ended. No content.

Of all this only a conversation's hooks are changed here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from chatapp.agent_presets.admin.hooks import HOOKS_HELP, check_hook_field
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions import update_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.admin.fields import YamlField
from chatapp.operations.admin.pages import ViewOnlyAdmin
from chatapp.runs.models import Run


class ConversationForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Conversation
        fields = ("hooks",)
        field_classes: ClassVar = {"hooks": YamlField}
        help_texts: ClassVar = {"hooks": HOOKS_HELP}

    def clean_hooks(self) -> list[dict[str, Any]]:
        return check_hook_field(self.cleaned_data["hooks"] or [], "conversation")


@admin.register(Conversation)
class ConversationAdmin(ViewOnlyAdmin):
    form = ConversationForm
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
    readonly_fields = tuple(name for name in fields if name != "hooks")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def save_model(self, request: HttpRequest, obj: Conversation, form: Any, change: bool) -> None:
        hooks = form.cleaned_data["hooks"]
        update_conversation(
            user=obj.user, conversation_id=str(obj.pk), changes={"hooks": hooks}, now=clock.now()
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
