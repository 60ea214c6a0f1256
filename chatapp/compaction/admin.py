"""Compactions in the admin: times, and numbers of messages and tokens. No content, and read-only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from chatapp.compaction.models import Compaction
from chatapp.operations.admin.pages import ViewOnlyAdmin, WordFilter
from chatapp.operations.translations import translate_sentence


@admin.register(Compaction)
class CompactionAdmin(ViewOnlyAdmin):
    list_display = (
        "id",
        "conversation_key",
        "model",
        "status",
        "strategy_name",
        "message_count",
        "tokens_before",
        "tokens_after",
        "created_at",
    )
    list_filter = ("status", ("strategy", WordFilter), "model", "created_at")
    list_select_related = ("model",)
    search_fields = ("=id", "=conversation__id", "conversation__user__email")
    search_help_text = _("The id of a compaction or a conversation, or a user's email address")
    ordering = ("-created_at",)
    fields = (
        "id",
        "conversation_key",
        "model",
        "status",
        "strategy_name",
        "first_position",
        "last_position",
        "message_count",
        "kept_count",
        "summary_tokens",
        "fallback",
        "problem",
        "tokens_before",
        "tokens_after",
        "usage",
        "holder",
        "fence",
        "lease_expires_at",
        "created_at",
        "finished_at",
    )

    @admin.display(description=_("conversation"), ordering="conversation_id")
    def conversation_key(self, compaction: Compaction) -> str:
        return str(compaction.conversation_id)

    @admin.display(description=_("strategy"), ordering="strategy")
    def strategy_name(self, compaction: Compaction) -> str:
        return translate_sentence(compaction.strategy)

    @admin.display(description=_("fallback reason"))
    def fallback(self, compaction: Compaction) -> str:
        return translate_sentence(compaction.fallback_reason)

    @admin.display(description=_("error"))
    def problem(self, compaction: Compaction) -> str:
        return translate_sentence(compaction.error)
