"""Agents: how they speak, with which model, how their context is kept, what their hooks do."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from chatapp.actions.agents import save_agent
from chatapp.actions.hook_actions import check_hooks
from chatapp.admin.policy_table import policy_table
from chatapp.errors import InvalidInput, NotFound
from chatapp.models import Agent
from chatapp.policies import read_hooks, rules_for
from chatapp.selectors.model_configs import default_model
from chatapp.toolbox import BUILT_IN, tool_names
from memory.errors import PolicyError
from memory.policy import merge_policies


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    chooses_tools = forms.BooleanField(
        label="Its own choice of tools",
        required=False,
        help_text="Without it, its answers have what DEFAULT_TOOLS says and the MCP servers for everyone.",
    )
    tools = forms.MultipleChoiceField(
        choices=[(name, f"{name}: {tool.spec.description}") for name, tool in BUILT_IN.items()],
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
            "context_policy",
            "hooks",
            "enabled",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["chooses_tools"].initial = self.instance.tools is not None
        self.initial["tools"] = self.instance.tools or []

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("chooses_tools"):
            cleaned["tools"] = None
        return cleaned

    def clean_context_policy(self) -> dict[str, Any]:
        policy = self.cleaned_data["context_policy"] or {}
        if not isinstance(policy, dict):
            raise ValidationError('Enter an object like {"keep_recent": 20}.')
        try:
            merge_policies(("agent", policy))
        except PolicyError as error:
            raise ValidationError(str(error)) from None
        return policy

    def clean_hooks(self) -> list[Any]:
        declared = self.cleaned_data["hooks"] or []
        if not isinstance(declared, list):
            raise ValidationError("Enter a list of hooks.")
        try:
            check_hooks(read_hooks(declared), "hooks", tool_names())
        except PolicyError as error:
            raise ValidationError(f"{error.field}: {error.problem}") from None
        except InvalidInput as error:
            raise ValidationError(error.message) from None
        return declared


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
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
            ("What it says", {"fields": ("system_prompt", "greeting", "temperature", "timeout_s")}),
            ("Tools and memory", {"fields": ("chooses_tools", "tools", "mcp_servers", "uses_memory")}),
            ("Context", {"fields": ("context_policy", "hooks", *shown)}),
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """What users make for themselves is theirs."""
        return super().get_queryset(request).filter(owner=None)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "model":  # a plain choice: models are added in their own list
            return db_field.formfield()
        if db_field.name == "mcp_servers":
            return db_field.formfield(widget=forms.CheckboxSelectMultiple)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        save_agent(agent=obj)

    @admin.display(description="In effect")
    def effective_policy(self, agent: Agent) -> str:
        try:
            return policy_table(rules_for(agent.model or default_model(), agent=agent).effective)
        except (PolicyError, NotFound) as error:
            return str(error)
