"""The admin site. It uses the sign-in of the service, with second factors. Other users get 404."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import logout
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import DataError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from chatapp.operations import clock
from chatapp.operations.admin.home import read_overview
from chatapp.operations.admin.settings import SettingsForm, other_settings
from chatapp.operations.database.audit import record_change
from chatapp.operations.monitoring.doctor import examine

View = Callable[..., HttpResponseBase]

SUBJECTS = (
    ("models", _("Models and agents"), ("ModelConfig", "Agent", "DeploymentHook", "McpServer", "Prompt")),
    (
        "people",
        _("People"),
        ("User", "Group", "Invitation", "EmailAddress", "ApiToken", "Budget"),
    ),
    ("work", _("Activity"), ()),
)
"""The sections of the panel, in this order. The last one has all tables that no other one names."""


def _filters_list(request: HttpRequest) -> bool:
    """Return whether the URL filters a list, possibly with invalid values such as `created_at__year=-1`."""
    match = request.resolver_match
    return bool(request.GET) and match is not None and (match.url_name or "").endswith("_changelist")


class AuditedAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Logs what operators add, change and delete in the audit log, in the same transaction."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        audit_change(request, obj, "added", message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        audit_change(request, obj, "changed", message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        # Before the deletion, while the rows and their names exist.
        for obj in queryset:
            audit_change(request, obj, "deleted")
        return super().log_deletions(request, queryset)


def audit_change(request: HttpRequest, obj: Model, done: str, message: Any = ()) -> None:
    """Record a change by the signed-in operator."""
    changes = message if isinstance(message, list) else []
    fields = [field for each in changes for field in each.get("changed", {}).get("fields", ())]
    record_change(obj, done, fields=fields, actor_id=request.user.pk)


class FilteredAdmin(ModelAdmin):  # type: ignore[type-arg]
    """Allows filters only for columns that the pages show. Django allows all columns of the table, so an operator could
    guess a title letter by letter."""

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        filters = (each[0] if isinstance(each, tuple) else each for each in self.get_list_filter(request))
        columns = (*filters, *self.get_list_display(request), *flatten_fieldsets(self.get_fieldsets(request)))
        shown = {"pk", self.opts.pk.name, self.date_hierarchy, *columns}
        return lookup.partition("__")[0] in shown and super().lookup_allowed(lookup, value, request)


class PalimpsestAdminSite(AdminSite):
    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = _("Administration")

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register the models with audited changes and restricted filters."""
        inner = admin_class or ModelAdmin
        bases = (AuditedAdmin, FilteredAdmin, inner)
        audited = type(f"Audited{inner.__name__}", bases, {"__module__": inner.__module__})
        super().register(model_or_iterable, audited, **options)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return the tables grouped by subject instead of by app."""
        apps: list[dict[str, Any]] = super().get_app_list(request, app_label)
        tables = {
            table["object_name"]: table for app in apps for table in app["models"] if table["admin_url"]
        }
        subjects = []
        for label, name, named in SUBJECTS:
            # Remove them, so that the last subject gets the rest.
            found = [tables.pop(one) for one in named or tuple(tables) if one in tables]
            subjects.append({"app_label": label, "name": name, "models": found})
        return [subject for subject in subjects if subject["models"]]

    def get_urls(self) -> list[Any]:
        own = [
            path("checks/", self.admin_view(self.checks), name="checks"),
            path("settings/", self.admin_view(self.settings), name="settings"),
        ]
        # Before Django's own URLs, the last of which matches everything.
        return [*own, *super().get_urls()]

    @method_decorator(never_cache)
    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show activity and failures above the list of tables."""
        shown = {"overview": read_overview(clock.now()), **(extra_context or {})}
        return super().index(request, shown)

    def checks(self, request: HttpRequest) -> HttpResponse:
        """Show the findings of `manage.py doctor`. A POST also calls the models, which takes time and tokens."""
        asks_models = request.method == "POST"
        findings = list(examine(asks_models=asks_models))
        shown = {"title": gettext("System checks"), "findings": findings, "asks_models": asks_models}
        return render(request, "admin/checks.html", {**self.each_context(request), **shown})

    def settings(self, request: HttpRequest) -> HttpResponse:
        """Show the settings and their sources, and change those that need no restart."""
        if not request.user.is_superuser:
            raise PermissionDenied
        form = SettingsForm(request.POST or None, actor_id=request.user.pk)
        if request.method == "POST" and form.is_valid():
            changed = form.save()
            told = gettext("Changed: %(names)s. It is in effect now.") % {"names": ", ".join(changed)}
            messages.success(request, told if changed else gettext("Nothing was changed."))
            return redirect("admin:settings")
        shown = {"title": gettext("Settings"), "form": form, "others": other_settings()}
        status = 400 if form.errors else 200
        return render(request, "admin/settings.html", {**self.each_context(request), **shown}, status=status)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return the view for operators only. Other signed-in users get 404, not a second sign-in."""
        guarded: View = super().admin_view(view, cacheable)

        def only_operators(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                raise Http404
            try:
                return guarded(request, *args, **kwargs)
            except (OverflowError, DataError) as error:
                # For numbers of more than 64 bits, SQLite's driver raises OverflowError, and PostgreSQL DataError.
                raise BadRequest(
                    gettext("A number or date here is larger than the database can store.")
                ) from error
            except ValueError as error:
                if not _filters_list(request):
                    raise
                raise BadRequest(gettext("A filter in this address has an impossible value.")) from error

        return update_wrapper(only_operators, guarded)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise Http404
        query = {"next": request.GET.get("next") or "/admin/"}
        response: HttpResponse = redirect("account_login")
        response["Location"] += "?" + urlencode(query)
        return response

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        logout(request)
        return redirect("account_login")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return redirect("account_change_password")
