"""The admin page of ratings: counts by model and agent, and the reasons. It shows no chat text."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from chatapp.features.feedback.models import AnswerFeedback
from chatapp.features.feedback.selectors import ratings_by_model_and_agent, reasons_of
from chatapp.operations.admin.pages import ViewOnlyAdmin


@admin.register(AnswerFeedback)
class AnswerFeedbackAdmin(ViewOnlyAdmin):
    list_display = ("given_at", "rating", "reason", "model_name", "agent")
    list_filter = ("rating", "reason", "given_at")
    list_display_links = None
    list_select_related = ("agent",)
    search_fields = ("=model_name", "=agent__name")
    search_help_text = _("The name of a model or an agent")
    ordering = ("-given_at",)
    fields = ("given_at", "rating", "reason", "model_name", "agent")

    def sums_of(self, rows: QuerySet[AnswerFeedback]) -> dict[str, Any]:
        return {"groups": ratings_by_model_and_agent(rows), "reasons": reasons_of(rows)}
