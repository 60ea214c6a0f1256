"""The admin page of MCP servers: headers are stored and never shown; the Test lists the server's tools."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html_join
from django.views.decorators.debug import sensitive_post_parameters

from agents.yaml_text import write_yaml
from chatapp.agent_presets.actions import save_mcp_server
from chatapp.agent_presets.mcp_servers import check_server
from chatapp.agent_presets.models import McpServer
from chatapp.operations.admin.fields import YamlField
from chatapp.operations.admin.pages import Check, TestedAdmin


class McpServerForm(forms.ModelForm):  # type: ignore[type-arg]
    headers = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "class": "vLargeTextField"}),
    )
    remove_headers = forms.BooleanField(label="Remove the stored headers", required=False)

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
        kept = "Headers are stored, encrypted; they are never shown. Empty: keep them."
        example = "One a line, such as Authorization: Bearer …"
        has_headers = bool(self.instance.headers_encrypted)
        self.fields["headers"].help_text = kept if has_headers else example
        if not has_headers:
            del self.fields["remove_headers"]

    def clean_tool_filter(self) -> list[str]:
        names = self.cleaned_data["tool_filter"] or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError('Enter a list of names like ["search", "fetch"].')
        return names

    def clean_headers(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        pairs = [line.partition(":") for line in lines]
        if not all(name.strip().isascii() and colon and value.strip() for name, colon, value in pairs):
            raise ValidationError("Enter one header a line, as Name: value.")
        return {name.strip(): value.strip() for name, _, value in pairs}

    def clean(self) -> dict[str, Any]:
        """Refuse a new address with the stored headers, which could be sent to somebody else there."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        moves = "url" in self.changed_data and bool(self.instance.headers_encrypted)
        if moves and not cleaned.get("headers") and not cleaned.get("remove_headers"):
            self.add_error(
                "headers", "The address is another one: enter the headers for it, or remove the stored ones."
            )
        return cleaned

    @property
    def new_headers(self) -> dict[str, str] | None:
        """None keeps the stored ones."""
        if self.cleaned_data.get("remove_headers"):
            return {}
        return self.cleaned_data.get("headers") or None


@admin.register(McpServer)
class McpServerAdmin(TestedAdmin[McpServer]):
    form = McpServerForm
    list_display = ("name", "url", "enabled", "for_everyone", "needs_consent", "state", "test_button")
    list_filter = ("enabled", "for_everyone")
    search_fields = ("name", "url")
    readonly_fields = ("state", "listed_tools")

    def get_fieldsets(self, request: HttpRequest, obj: McpServer | None = None) -> Any:
        removal = ("remove_headers",) if obj and obj.headers_encrypted else ()
        shown = (("What it offers", {"fields": ("state", "listed_tools")}),) if obj else ()
        return (
            (None, {"fields": ("name", "url", "is_own", "headers", *removal, "enabled")}),
            ("Use", {"fields": ("for_everyone", "needs_consent", "tool_filter", "timeout_s")}),
            *shown,
        )

    @method_decorator(sensitive_post_parameters("headers"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: McpServer, form: Any, change: bool) -> None:
        save_mcp_server(server=obj, headers=form.new_headers)

    @admin.display(description="last test")
    def state(self, server: McpServer) -> str:
        if server.problem:
            return server.problem
        if server.listed_at is None:
            return "not asked yet"
        return f"{server.listed_at:%Y-%m-%d %H:%M} UTC: {len(server.tools)} tools"

    @admin.display(description="tools, as the model reads them")
    def listed_tools(self, server: McpServer) -> str:
        rows = ((tool["name"], tool["description"], write_yaml(tool["parameters"])) for tool in server.tools)
        shown = "<p><b>{}</b> {}</p><details><summary>Parameters</summary><pre>{}</pre></details>"
        return format_html_join("", shown, rows)

    def check_row(self, row: McpServer) -> Check:
        return check_server(row)
