"""The ledger of model calls, with the sums of whatever is filtered."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.template.response import TemplateResponse

from chatapp.admin.viewing import ViewOnlyAdmin
from chatapp.models import Usage


@admin.register(Usage)
class UsageAdmin(ViewOnlyAdmin):
    change_list_template = "admin/chatapp/usage/change_list.html"
    list_display = (
        "created_at",
        "user",
        "purpose",
        "model_name",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cost",
        "kept_out_tokens",
        "compaction_saved",
        "cache_saved",
        "exact",
    )
    list_filter = ("purpose", "model_name", "exact", "created_at")
    list_select_related = ("user",)
    list_display_links = None
    date_hierarchy = "created_at"
    search_fields = ("user__email", "=conversation__id", "=run__id")
    search_help_text = "A user's e-mail address, or the id of a conversation or a run"
    ordering = ("-created_at",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        context = response.context_data if isinstance(response, TemplateResponse) else None
        if context and "cl" in context:
            context["totals"] = (
                context["cl"]
                .queryset.order_by()
                .aggregate(
                    calls=Count("pk"),
                    input=Sum("input_tokens", default=0),
                    output=Sum("output_tokens", default=0),
                    cached=Sum("cached_tokens", default=0),
                    cost=Sum("cost"),
                    kept_out=Sum("kept_out_tokens", default=0),
                    compaction_saved=Sum("compaction_saved"),
                    cache_saved=Sum("cache_saved"),
                )
            )
        return response
