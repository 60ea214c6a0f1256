"""The admin pages of usage: the ledger, and its sums with their chart."""

from __future__ import annotations

from typing import Any, get_args

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from chatapp.operations.admin.pages import ViewOnlyAdmin
from chatapp.operations.errors import InvalidInput
from chatapp.providers.models import Usage
from chatapp.providers.selectors import GroupBy, usage_by, usage_days
from chatapp.providers.usage_report import bars_of, csv_response


class UsageReportForm(forms.Form):
    group_by = forms.ChoiceField(
        label="by", choices=[(name, name) for name in get_args(GroupBy) if name != "conversation"]
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("from", "to"):  # the first is no name of Python's
            widget = forms.DateInput(attrs={"type": "date"})
            self.fields[name] = forms.DateField(required=False, widget=widget)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            usage_days(cleaned.get("from"), cleaned.get("to"))
        except InvalidInput as error:
            raise ValidationError(error.message) from None
        return cleaned


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

    def get_urls(self) -> list[URLPattern]:
        report = self.admin_site.admin_view(self.report)
        return [path("report/", report, name="chatapp_usage_report"), *super().get_urls()]

    def report(self, request: HttpRequest) -> HttpResponse:
        """Show sums of all users' calls with their chart, or return them as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = UsageReportForm(request.GET or None)
        asked = form.cleaned_data if form.is_valid() else {}
        first, last = usage_days(asked.get("from"), asked.get("to"))
        group_by: GroupBy = asked.get("group_by") or "day"
        rows, total = usage_by(None, first=first, last=last, group_by=group_by)
        if request.GET.get("format") == "csv" and asked:
            return csv_response(rows, group_by)
        bars = bars_of(rows, group_by)
        shown = {"from": first, "to": last, "group_by": group_by}
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Sums and chart",
            "form": form if form.errors else UsageReportForm(initial=shown),
            "bars": bars,
            "more": len(rows) - len(bars),
            "total": total,
            "group_by": group_by,
        }
        return TemplateResponse(request, "admin/chatapp/usage/report.html", context)

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
