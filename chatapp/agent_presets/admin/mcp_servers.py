"""The admin page of MCP servers: headers are stored and never shown; the Test lists the server's tools."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.presets.yaml_text import write_yaml
from chatapp.agent_presets.actions import approve_tools, save_mcp_server
from chatapp.agent_presets.mcp_servers import check_server
from chatapp.agent_presets.models import McpServer
from chatapp.agent_presets.selectors import listing_fingerprint, waiting_tools
from chatapp.operations.admin.fields import YamlField
from chatapp.operations.admin.pages import TestedAdmin
from chatapp.operations.translations import translate_sentence
from chatapp.providers.model_check import Check


class McpServerForm(forms.ModelForm):  # type: ignore[type-arg]
    headers = forms.CharField(
        label=_("Headers"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "class": "vLargeTextField"}),
    )
    remove_headers = forms.BooleanField(label=_("Remove the stored headers"), required=False)

    class Meta:
        model = McpServer
        fields = (
            "name",
            "url",
            "is_own",
            "enabled",
            "for_everyone",
            "tool_filter",
            "needs_consent",
            "timeout_s",
        )
        field_classes: ClassVar = {"tool_filter": YamlField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kept = gettext("Headers are stored, encrypted; they are never shown. Empty: keep them.")
        example = gettext("One a line, such as Authorization: Bearer …")
        has_headers = bool(self.instance.headers_encrypted)
        self.fields["headers"].help_text = kept if has_headers else example
        if not has_headers:
            del self.fields["remove_headers"]

    def clean_tool_filter(self) -> list[str]:
        names = self.cleaned_data["tool_filter"] or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError(gettext('Enter a list of names like ["search", "fetch"].'))
        return names

    def clean_headers(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        pairs = [line.partition(":") for line in lines]
        if not all(name.strip().isascii() and colon and value.strip() for name, colon, value in pairs):
            raise ValidationError(gettext("Enter one header a line, as Name: value."))
        return {name.strip(): value.strip() for name, _, value in pairs}

    def clean(self) -> dict[str, Any]:
        """Refuse a new address with the stored headers, which could be sent to a stranger there."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        moves = "url" in self.changed_data and bool(self.instance.headers_encrypted)
        if moves and not cleaned.get("headers") and not cleaned.get("remove_headers"):
            told = gettext("The address has changed: enter its headers, or remove the stored ones.")
            self.add_error("headers", told)
        return cleaned

    @property
    def new_headers(self) -> dict[str, str] | None:
        """Return the headers to store; None keeps the stored ones."""
        if self.cleaned_data.get("remove_headers"):
            return {}
        return self.cleaned_data.get("headers") or None


@admin.register(McpServer)
class McpServerAdmin(TestedAdmin[McpServer]):
    form = McpServerForm
    list_display = ("name", "url", "enabled", "for_everyone", "needs_consent", "state", "test_button")
    list_filter = ("enabled", "for_everyone")
    search_fields = ("name", "url")
    readonly_fields = ("state", "waiting", "listed_tools")

    def get_fieldsets(self, request: HttpRequest, obj: McpServer | None = None) -> Any:
        removal = ("remove_headers",) if obj and obj.headers_encrypted else ()
        waiting = ("waiting",) if obj and waiting_tools(obj) else ()
        shown = ((_("What it offers"), {"fields": ("state", *waiting, "listed_tools")}),) if obj else ()
        return (
            (None, {"fields": ("name", "url", "is_own", "headers", *removal, "enabled")}),
            (_("Use"), {"fields": ("for_everyone", "needs_consent", "tool_filter", "timeout_s")}),
            *shown,
        )

    def get_urls(self) -> list[URLPattern]:
        approve = self.admin_site.admin_view(require_POST(self.approve))
        name = "chatapp_mcpserver_approve"
        return [path("<uuid:row_id>/approve/", approve, name=name), *super().get_urls()]

    def approve(self, request: HttpRequest, row_id: UUID) -> HttpResponse:
        """Approve the displayed list, or report that the server lists something else by now."""
        server = self.get_object(request, str(row_id))
        if server is None or not self.has_change_permission(request, server):
            raise PermissionDenied
        with transaction.atomic():
            is_approved = approve_tools(server_id=row_id, fingerprint=request.POST.get("listing", ""))
            if is_approved:
                self.log_change(request, server, [{"changed": {"fields": ["approved tools"]}}])
        if is_approved:
            self.message_user(request, _("Its tools are offered as they are shown below."), messages.SUCCESS)
        else:
            told = _("The server changed its tools again. Look at them once more.")
            self.message_user(request, told, messages.ERROR)
        return redirect("admin:chatapp_mcpserver_change", row_id)

    def save_model(self, request: HttpRequest, obj: McpServer, form: Any, change: bool) -> None:
        save_mcp_server(server=obj, headers=form.new_headers)

    @admin.display(description=_("last test"))
    def state(self, server: McpServer) -> str:
        if server.problem:
            return translate_sentence(server.problem)
        if server.listed_at is None:
            return gettext("not asked yet")
        count, waiting = len(server.tools), len(waiting_tools(server))
        told = ngettext("%(at)s UTC: %(count)d tool", "%(at)s UTC: %(count)d tools", count)
        if waiting:
            told = gettext("%(at)s UTC: %(count)d tools, %(waiting)d waiting for your approval")
        at = f"{server.listed_at:%Y-%m-%d %H:%M}"
        return told % {"at": at, "count": count, "waiting": waiting}

    @admin.display(description=_("changed since you approved it; not offered"))
    def waiting(self, server: McpServer) -> str:
        changed = waiting_tools(server)
        shown = "<p><b>{}</b></p><pre>{}</pre>"
        rows = format_html_join("", shown, ((name, difference_of(server, name)) for name in changed))
        button = '<button type="submit" class="button" name="listing" value="{}" formaction="{}">{}</button>'
        address = reverse("admin:chatapp_mcpserver_approve", args=[server.pk])
        return format_html("{}" + button, rows, listing_fingerprint(server), address, gettext("Approve"))

    @admin.display(description=_("tools, as the model reads them"))
    def listed_tools(self, server: McpServer) -> str:
        title = gettext("Parameters")
        rows = (
            (tool["name"], tool["description"], title, write_yaml(tool["parameters"]))
            for tool in server.tools
        )
        shown = "<p><b>{}</b> {}</p><details><summary>{}</summary><pre>{}</pre></details>"
        return format_html_join("", shown, rows)

    def check_row(self, row: McpServer) -> Check:
        return check_server(row)


def difference_of(server: McpServer, name: str) -> str:
    """Return a diff between the approved and the current definition of a tool."""
    former, listed = (
        next((write_yaml(tool).splitlines() for tool in tools if tool["name"] == name), [])
        for tools in (server.approved_tools, server.tools)
    )
    return "\n".join(unified_diff(former, listed, "approved", "now", lineterm="", n=3))
