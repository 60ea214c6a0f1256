"""Conversations in the admin: owner, times and size, but no content. Only hooks can be changed here."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from chatapp.agent_presets.admin.hooks import HOOKS_HELP, HooksField, check_hook_field
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation
from chatapp.conversations.operator_reads import open_for_operator, readable_conversations
from chatapp.operations import clock
from chatapp.operations.admin.pages import ViewOnlyAdmin
from memory.bounds import MAX_ID


class ConversationForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Conversation
        fields = ("hooks",)
        field_classes: ClassVar = {"hooks": HooksField}
        help_texts: ClassVar = {"hooks": HOOKS_HELP}

    def clean_hooks(self) -> list[dict[str, Any]]:
        return check_hook_field(self.cleaned_data["hooks"] or [], "conversation")


class LookForm(forms.Form):
    reason = forms.CharField(label=_("Reason"), max_length=200)
    before = forms.IntegerField(required=False, min_value=0, max_value=MAX_ID, widget=forms.HiddenInput)


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
    search_help_text = _("A conversation's id, or a user's email address")
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

    change_form_template = "admin/chatapp/conversation/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        look = self.admin_site.admin_view(self.look)
        return [
            path("<uuid:conversation_id>/look/", look, name="chatapp_conversation_look"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        may_look = bool(request.user.is_superuser) and settings.OPERATORS_READ_CHATS
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), "may_look": may_look}
        )

    def look(self, request: HttpRequest, conversation_id: UUID) -> HttpResponse:
        """Ask an admin for the reason, then show the messages."""
        rows = readable_conversations()
        if not request.user.is_superuser or not rows.filter(pk=conversation_id).exists():
            raise Http404
        form = LookForm(request.POST or None)
        shown: dict[str, Any] = {"form": form, "conversation_id": conversation_id, "title": _("Read")}
        if form.is_valid():
            asked = form.cleaned_data
            conversation, page = open_for_operator(
                conversation_id, actor_id=request.user.pk, reason=asked["reason"], before=asked["before"]
            )
            said = [
                {"role": row.get_role_display(), "at": row.created_at, "text": text_of(row.parts)}
                for row in page.rows
            ]
            shown |= {"conversation": conversation, "page": page, "messages_shown": said}
        context = {**self.admin_site.each_context(request), "opts": self.opts, **shown}
        return TemplateResponse(request, "admin/chatapp/conversation/look.html", context)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Bypass ViewOnlyAdmin, which permits no change, because hooks may be changed here.
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def save_model(self, request: HttpRequest, obj: Conversation, form: Any, change: bool) -> None:
        # Use the action, which locks the row and notifies clients; the form would write all columns.
        hooks = form.cleaned_data["hooks"]
        update_conversation(user=obj.user, conversation_id=str(obj.pk), hooks=hooks, now=clock.now())

    @admin.display(description=_("messages"), ordering="next_position")
    def message_count(self, conversation: Conversation) -> int:
        return conversation.next_position
