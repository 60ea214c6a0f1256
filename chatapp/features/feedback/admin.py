"""The admin page of ratings: counts by model and agent, and the reasons. It shows no chat text."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
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

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        # Django responds to an invalid filter with a redirect.
        context = response.context_data if isinstance(response, TemplateResponse) else None
        if context and "cl" in context:
            # Apply the filters of the page, so that the sums match the listed rows.
            rows = context["cl"].queryset
            context |= {"groups": ratings_by_model_and_agent(rows), "reasons": reasons_of(rows)}
        return response
