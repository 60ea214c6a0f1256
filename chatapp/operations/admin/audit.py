"""The read-only page of the audit log, with filters, search by account and CSV export."""

from __future__ import annotations

import csv
import json
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatapp.operations.admin.pages import ViewOnlyAdmin
from chatapp.operations.http.downloads import plain_cell
from chatapp.operations.models import AuditEvent
from chatapp.operations.translations import translate_sentence

# The file is built in memory.
MAX_EXPORTED = 100_000
COLUMNS = ("at", "kind", "account", "by", "address", "detail")


@admin.register(AuditEvent)
class AuditAdmin(ViewOnlyAdmin):
    list_display = ("at", "kind", "account", "by", "address", "details")
    list_filter = ("kind", "at")
    list_display_links = None
    date_hierarchy = "at"
    search_fields = ("=address",)
    search_help_text = _("An email address, or an address on the network")
    ordering = ("-at", "-id")
    actions = ("export",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        users = get_user_model()._default_manager
        events: QuerySet[AuditEvent] = super().get_queryset(request)
        # Events outlive users, so they have no foreign key. With subqueries, a page needs one query.
        return events.annotate(
            account_email=Subquery(users.filter(pk=OuterRef("user_id")).values("email")[:1]),
            actor_email=Subquery(users.filter(pk=OuterRef("actor_id")).values("email")[:1]),
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[AuditEvent], bool]:
        """Find events of accounts whose email address contains the term, and events from this network address."""
        if not search_term:
            return queryset, False
        found = get_user_model()._default_manager.filter(email__icontains=search_term).values("pk")
        is_of_user = Q(user_id__in=found) | Q(actor_id__in=found)
        return queryset.filter(is_of_user | Q(address=search_term)), False

    @admin.display(description=_("account"), ordering="account_email")
    def account(self, event: Any) -> str:
        return event.account_email or _deleted(event.user_id)

    @admin.display(description=_("by"))
    def by(self, event: Any) -> str:
        return event.actor_email or _deleted(event.actor_id)

    @admin.display(description=_("details"))
    def details(self, event: AuditEvent) -> str:
        told = ((translate_sentence(name), _plain(value)) for name, value in event.detail.items() if value)
        return "; ".join(f"{name}: {translate_sentence(value)}" for name, value in told)

    @admin.action(description=_("Export as CSV"))
    def export(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> HttpResponse:
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="audit.csv"'
        rows = csv.writer(response)
        rows.writerow(COLUMNS)
        for event in queryset[:MAX_EXPORTED]:
            # Anybody may sign up with an email address that begins like a formula.
            people = plain_cell(self.account(event)), plain_cell(self.by(event))
            detail = json.dumps(event.detail, ensure_ascii=False)
            rows.writerow((event.at.isoformat(), event.kind, *people, event.address, detail))
        return response


def _deleted(user_id: object) -> str:
    return gettext("deleted, %(id)s") % {"id": user_id} if user_id else ""


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
