"""Conversations as operators see them: whose, when, how large. No content; only their hooks are changed here."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from chatapp.agent_presets.admin.hooks import HOOKS_HELP, check_hook_field
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.admin.fields import YamlField
from chatapp.operations.admin.pages import ViewOnlyAdmin


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
        update_conversation(user=obj.user, conversation_id=str(obj.pk), hooks=hooks, now=clock.now())

    @admin.display(description="messages", ordering="next_position")
    def message_count(self, conversation: Conversation) -> int:
        return conversation.next_position
