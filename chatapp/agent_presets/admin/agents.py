"""The admin page of agents."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.presets.exchange import PresetError, read_preset, write_preset
from agents.presets.yaml_text import MAX_YAML_CHARS
from chatapp.accounts.group_access.admin import KeepsRestrictions
from chatapp.accounts.models import User
from chatapp.agent_presets.actions import create_agent
from chatapp.agent_presets.admin.hooks import HOOKS_HELP, HooksField, check_hook_field
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.services import CheckedPreset, check_preset, preset_of
from chatapp.context.admin import POLICY_HELP, PolicyField, check_policy_field, policy_table
from chatapp.context.policies import rules_for
from chatapp.context.preset_choices import CHOICES
from chatapp.context.tools.registry import local_tools
from chatapp.operations.admin.fields import bound_fields
from chatapp.operations.admin.pages import SentAtOnce
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.operations.translations import translate_sentence
from chatapp.providers.selectors import default_model
from chatapp.runs.preview import preview_agent
from memory.bounds import MAX_PROMPT_CHARS, MAX_TEMPERATURE, MAX_TIMEOUT_S
from memory.errors import PolicyError


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    # Without this, no ticked box could mean either no tools at all or no choice.
    chooses_tools = forms.BooleanField(
        label=_("Its own choice of tools"),
        required=False,
        help_text=_("If off, its answers use the tools of DEFAULT_TOOLS and the MCP servers for everyone."),
    )
    tools = forms.MultipleChoiceField(
        label=_("Tools"),
        choices=lambda: [
            (name, f"{name}: {translate_sentence(tool.spec.description)}")
            for name, tool in local_tools().items()
        ],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    class Meta:
        model = Agent
        fields = (
            "name",
            "model",
            "mode",
            "system_prompt",
            "greeting",
            "temperature",
            "timeout_s",
            "tools",
            "mcp_servers",
            "uses_memory",
            "shares_memory",
            "context_policy",
            "hooks",
            "enabled",
        )
        field_classes: ClassVar = {"context_policy": PolicyField, "hooks": HooksField}
        help_texts: ClassVar = {"context_policy": POLICY_HELP, "hooks": HOOKS_HELP}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bound_fields(
            self,
            system_prompt=MAX_PROMPT_CHARS,
            greeting=MAX_PROMPT_CHARS,
            temperature=MAX_TEMPERATURE,
            timeout_s=MAX_TIMEOUT_S,
        )
        self.fields["chooses_tools"].initial = self.instance.tools is not None
        self.initial["tools"] = self.instance.tools or []

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("chooses_tools"):
            cleaned["tools"] = None
        return cleaned

    def clean_name(self) -> str:
        """Check the name here: the database constraint includes the owner, which is not a field of this form."""
        name: str = self.cleaned_data["name"]
        if Agent.objects.filter(owner=None, name=name).exclude(pk=self.instance.pk).exists():
            raise ValidationError(gettext("There is an agent of this name already."))
        return name

    def clean_context_policy(self) -> dict[str, Any]:
        return check_policy_field(self.cleaned_data["context_policy"] or {}, "agent")

    def clean_hooks(self) -> list[dict[str, Any]]:
        return check_hook_field(self.cleaned_data["hooks"] or [], "agent")


class PreviewForm(forms.Form):
    question = forms.CharField(
        label=_("Question"),
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
    )


class ImportForm(forms.Form):
    yaml = forms.CharField(
        label="YAML",
        max_length=MAX_YAML_CHARS,
        widget=forms.Textarea(attrs={"rows": 20, "class": "vLargeTextField"}),
    )

    def clean_yaml(self) -> CheckedPreset:
        try:
            return check_preset(
                read_preset(self.cleaned_data["yaml"]), CHOICES, owner_id=None, is_import=True
            )
        except PresetError as error:
            raise ValidationError(f"{translate_sentence(str(error))}.") from None
        except InvalidInput as error:
            raise ValidationError(translate_sentence(error.message)) from None


@admin.register(Agent)
class AgentAdmin(KeepsRestrictions, SentAtOnce):
    form = AgentForm
    list_display = ("name", "model", "mode", "enabled")
    list_filter = ("enabled", "mode")
    list_select_related = ("model",)
    search_fields = ("name",)
    readonly_fields = ("effective_policy",)

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        shown = ("effective_policy",) if obj else ()
        return (
            (None, {"fields": ("name", "model", "mode", "enabled")}),
            (
                _("Instructions and answers"),
                {"fields": ("system_prompt", "greeting", "temperature", "timeout_s")},
            ),
            (_("Tools"), {"fields": ("chooses_tools", "tools", "mcp_servers")}),
            (_("Memory"), {"fields": ("uses_memory", "shares_memory")}),
            (_("Context"), {"fields": ("context_policy", "hooks", *shown)}),
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Return only the agents of operators, not those of users."""
        return super().get_queryset(request).filter(owner=None)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "model":  # a plain select: models are added in their own list
            return db_field.formfield()
        if db_field.name == "mcp_servers":
            return db_field.formfield(widget=forms.CheckboxSelectMultiple)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        guarded = self.admin_site.admin_view
        # These precede Django's URLs, the last of which matches any path as a key.
        return [
            path("import/", guarded(self.import_view), name="chatapp_agent_import"),
            path("<uuid:agent_id>/preview/", guarded(self.preview_view), name="chatapp_agent_preview"),
            path("<uuid:agent_id>/export/", guarded(self.export_view), name="chatapp_agent_export"),
            *super().get_urls(),
        ]

    def _agent(self, request: HttpRequest, agent_id: UUID) -> Agent:
        agent = self.get_queryset(request).filter(pk=agent_id).first()
        if agent is None or not self.has_change_permission(request, agent):
            raise Http404
        return agent

    def preview_view(self, request: HttpRequest, agent_id: UUID) -> HttpResponse:
        agent = self._agent(request, agent_id)
        form = PreviewForm(request.POST or None)
        preview = None
        if form.is_valid():
            assert isinstance(request.user, User)
            preview = preview_agent(agent, form.cleaned_data["question"], request.user)
        shown = {"title": _("Preview"), "agent": agent, "form": form, "preview": preview}
        return render(
            request, "admin/chatapp/agent/preview.html", self.admin_site.each_context(request) | shown
        )

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST or None)
        if form.is_valid() and (agent := self._import(request, form)) is not None:
            return redirect("admin:chatapp_agent_change", agent.pk)
        shown = {**self.admin_site.each_context(request), "title": _("Import an agent"), "form": form}
        return render(request, "admin/chatapp/agent/import.html", shown)

    def _import(self, request: HttpRequest, form: ImportForm) -> Agent | None:
        checked: CheckedPreset = form.cleaned_data["yaml"]
        try:
            agent = create_agent(owner=None, values=checked.values)
        except Conflict as conflict:
            form.add_error("yaml", translate_sentence(conflict.message))
            return None
        self.message_user(request, gettext("Imported %(name)s.") % {"name": agent.name}, messages.SUCCESS)
        for note in checked.notes:
            self.message_user(request, translate_sentence(note), messages.WARNING)
        return agent

    def export_view(self, request: HttpRequest, agent_id: UUID) -> HttpResponse:
        agent = self._agent(request, agent_id)
        try:
            exported = write_preset(preset_of(agent))
        except InvalidInput as error:
            told = gettext("It cannot be exported. %(problem)s")
            problem = {"problem": translate_sentence(error.message)}
            self.message_user(request, told % problem, messages.ERROR)
            return redirect("admin:chatapp_agent_change", agent.pk)
        response = HttpResponse(exported, content_type="application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="agent-{agent.pk}.yaml"'
        return response

    @admin.display(description=_("In effect"))
    def effective_policy(self, agent: Agent) -> str:
        try:
            return policy_table(rules_for(agent.model or default_model(), agent=agent).effective)
        except (PolicyError, NotFound) as error:
            return translate_sentence(str(error))
