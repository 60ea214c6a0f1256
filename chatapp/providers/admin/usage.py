"""The admin pages of usage: the ledger, and its sums with their chart."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, gettext_noop, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from chatapp.operations.admin.pages import ViewOnlyAdmin, WordFilter
from chatapp.operations.errors import InvalidInput
from chatapp.operations.translations import translate_sentence
from chatapp.providers.models import Usage
from chatapp.providers.selectors import GroupBy, usage_by, usage_days
from chatapp.providers.usage_report import bars_of, csv_response

GROUPS: dict[GroupBy, str] = {
    "day": gettext_noop("day"),
    "user": gettext_noop("user"),
    "group": gettext_noop("group"),
    "model": gettext_noop("model"),
    "agent": gettext_noop("agent"),
    "purpose": gettext_noop("purpose"),
}


class UsageReportForm(forms.Form):
    group_by = forms.ChoiceField(
        label=pgettext_lazy("sums by day", "by"),
        choices=lambda: [(name, gettext(told)) for name, told in GROUPS.items()],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # `from` is a Python keyword, so these fields cannot be class attributes.
        for name, label in (("from", _("From")), ("to", _("To"))):
            widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
            self.fields[name] = forms.DateField(label=label, required=False, widget=widget)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            usage_days(cleaned.get("from"), cleaned.get("to"))
        except InvalidInput as error:
            raise ValidationError(translate_sentence(error.message)) from None
        return cleaned


@admin.register(Usage)
class UsageAdmin(ViewOnlyAdmin):
    change_list_template = "admin/chatapp/usage/change_list.html"
    list_display = (
        "created_at",
        "user",
        "purpose_name",
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
    fields = (*list_display, "conversation", "run", "model")
    list_filter = (("purpose", WordFilter), "model_name", "exact", "created_at")
    list_select_related = ("user",)
    list_display_links = None
    date_hierarchy = "created_at"
    search_fields = ("user__email", "=conversation__id", "=run__id")
    search_help_text = _("A user's email address, or the id of a conversation or a run")
    ordering = ("-created_at",)

    def get_urls(self) -> list[URLPattern]:
        report = self.admin_site.admin_view(self.report)
        return [path("report/", report, name="chatapp_usage_report"), *super().get_urls()]

    @admin.display(description=_("purpose"), ordering="purpose")
    def purpose_name(self, usage: Usage) -> str:
        return translate_sentence(usage.purpose)

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
        if group_by == "purpose":
            rows = [{**row, "key": translate_sentence(row["key"])} for row in rows]
        bars = bars_of(rows, group_by)
        shown = {"from": first, "to": last, "group_by": group_by}
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Sums and chart"),
            # Without errors, show the values in effect, including defaults.
            "form": form if form.errors else UsageReportForm(initial=shown),
            "bars": bars,
            "more": len(rows) - len(bars),
            "total": total,
            "group_by": gettext(GROUPS[group_by]),
        }
        return TemplateResponse(request, "admin/chatapp/usage/report.html", context)

    def sums_of(self, rows: QuerySet[Usage]) -> dict[str, Any]:
        totals = rows.order_by().aggregate(
            calls=Count("pk"),
            input=Sum("input_tokens", default=0),
            output=Sum("output_tokens", default=0),
            cached=Sum("cached_tokens", default=0),
            cost=Sum("cost"),
            kept_out=Sum("kept_out_tokens", default=0),
            compaction_saved=Sum("compaction_saved"),
            cache_saved=Sum("cache_saved"),
        )
        return {"totals": totals}
