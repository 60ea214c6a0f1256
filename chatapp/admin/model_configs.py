"""The models operators offer: endpoint, write-only key, sizes, prices, and a Test that says what it found."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from chatapp.actions.model_configs import save_model_config
from chatapp.model_check import check_model
from chatapp.models import ModelConfig
from chatapp.policies import rules_for
from memory.errors import PolicyError
from memory.policy import merge_policies

SOURCES = {
    "model": "entered here",
    "environment": "from the environment",
    "detected": "told by the provider, or publicly known for this model",
    "default": "nothing is known about this model, so the default",
}
OWNED_BY_ENVIRONMENT = ("base_url", "model_id")


class ModelConfigForm(forms.ModelForm):  # type: ignore[type-arg]
    api_key = forms.CharField(
        label="API key",
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password", "class": "vTextField"}
        ),
    )
    remove_api_key = forms.BooleanField(label="Remove the stored key", required=False)
    make_default = forms.BooleanField(
        label="Default", required=False, help_text="New conversations begin with this model."
    )

    class Meta:
        model = ModelConfig
        fields = (
            "name",
            "kind",
            "base_url",
            "model_id",
            "context_size",
            "max_output_tokens",
            "input_price",
            "output_price",
            "cached_price",
            "fast_model",
            "context_policy",
            "system_prompt",
            "enabled",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        has_key = bool(self.instance.api_key_encrypted)
        self.fields["api_key"].help_text = (
            "A key is stored, encrypted; it is never shown. Empty: keep it."
            if has_key
            else "No key is stored."
        )
        if not has_key:
            del self.fields["remove_api_key"]
        self.fields["make_default"].initial = self.instance.is_default
        if "fast_model" in self.fields and self.instance.pk:
            choices = ModelConfig.objects.exclude(pk=self.instance.pk)
            self.fields["fast_model"].queryset = choices  # type: ignore[attr-defined]

    def clean_context_policy(self) -> dict[str, Any]:
        policy = self.cleaned_data["context_policy"] or {}
        if not isinstance(policy, dict):
            raise ValidationError('Enter an object like {"keep_recent": 20}.')
        try:
            merge_policies(("model", policy))
        except PolicyError as error:
            raise ValidationError(str(error)) from None
        return policy

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self._check_key(cleaned)
        if cleaned.get("make_default") and not cleaned.get("enabled"):
            self.add_error("enabled", "The default model has to be enabled.")
        return cleaned

    def _check_key(self, cleaned: dict[str, Any]) -> None:
        """A stored key goes to the address it was entered for and to no other: nobody can have it sent to himself."""
        if cleaned.get("remove_api_key") and cleaned.get("api_key"):
            self.add_error("remove_api_key", "Either remove the key or enter a new one.")
        if "base_url" not in self.changed_data or not self.instance.api_key_encrypted:
            return
        if not cleaned.get("api_key") and not cleaned.get("remove_api_key"):
            self.add_error(
                "api_key", "The address is another one: enter the key for it, or remove the stored key."
            )

    @property
    def new_api_key(self) -> str | None:
        """None keeps the stored one."""
        if self.cleaned_data.get("remove_api_key"):
            return ""
        return self.cleaned_data.get("api_key") or None


@admin.register(ModelConfig)
class ModelConfigAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = ModelConfigForm
    change_form_template = "admin/chatapp/modelconfig/change_form.html"
    list_display = ("name", "endpoint", "window", "enabled", "is_default", "last_test", "test_button")
    list_filter = ("enabled", "kind", "origin")
    list_select_related = ("fast_model",)
    search_fields = ("name", "model_id", "base_url")
    actions = ("test_selected",)
    readonly_fields = ("origin", "effective_sizes", "last_test")

    def get_fieldsets(self, request: HttpRequest, obj: ModelConfig | None = None) -> Any:
        key_fields = ["api_key", "remove_api_key"] if obj and obj.api_key_encrypted else ["api_key"]
        if obj and obj.from_environment:
            key_fields = []
        fieldsets: list[Any] = [
            (
                None,
                {"fields": ["name", "kind", "base_url", "model_id", *key_fields, "enabled", "make_default"]},
            ),
            ("Sizes in tokens", {"fields": ["context_size", "max_output_tokens"]}),
            ("Prices in US dollars", {"fields": ["input_price", "output_price", "cached_price"]}),
            ("Use", {"fields": ["fast_model", "system_prompt", "context_policy"]}),
        ]
        if obj:
            fieldsets[0][1]["fields"].append("origin")
            fieldsets[1][1]["fields"].append("effective_sizes")
            fieldsets.append(("Test", {"fields": ["last_test"]}))
        return fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: ModelConfig | None = None) -> tuple[str, ...]:
        """What the environment says is changed there: here it would be undone by the next start."""
        owned = OWNED_BY_ENVIRONMENT if obj and obj.from_environment else ()
        return (*self.readonly_fields, *owned, *(("kind",) if obj else ()))

    def has_delete_permission(self, request: HttpRequest, obj: ModelConfig | None = None) -> bool:
        """The next start would bring these back; they can be switched off."""
        comes_back = obj is not None and (obj.from_environment or obj.origin == ModelConfig.Origin.BUILT_IN)
        return not comes_back and super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> Any:
        """Deleting goes one by one, where `has_delete_permission` looks at the row."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @method_decorator(sensitive_post_parameters("api_key"))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: ModelConfig, form: Any, change: bool) -> None:
        obj.is_default = form.cleaned_data["make_default"]
        save_model_config(config=obj, api_key=form.new_api_key)

    # --- what is shown ---------------------------------------------------------------------------------

    @admin.display(description="endpoint")
    def endpoint(self, config: ModelConfig) -> str:
        if config.kind == ModelConfig.Kind.DEMO:
            return "built in"
        return f"{config.model_id} at {config.base_url or 'api.openai.com'}"

    @admin.display(description="context size")
    def window(self, config: ModelConfig) -> str:
        return f"{rules_for(config).budget.context_size:,}"

    @admin.display(description="In effect")
    def effective_sizes(self, config: ModelConfig) -> str:
        resolved = rules_for(config).resolved
        budget = resolved.budget
        lines = [
            f"Context size {budget.context_size:,}: {SOURCES[resolved.context_size_from]}.",
            f"Output limit {budget.max_output_tokens:,}: {SOURCES[resolved.max_output_tokens_from]}.",
            f"Budget for history and question: {budget.input_tokens:,}.",
        ]
        warning = format_html('<p class="errornote">{}</p>', resolved.warning) if resolved.warning else ""
        return format_html("{}{}", format_html_join("", "<p>{}</p>", ((line,) for line in lines)), warning)

    @admin.display(description="last test", ordering="tested_at")
    def last_test(self, config: ModelConfig) -> str:
        if config.tested_at is None:
            return "never tested"
        return f"{config.tested_at:%Y-%m-%d %H:%M} UTC: {config.test_result}"

    @admin.display(description="")
    def test_button(self, config: ModelConfig) -> str:
        """Submits the list's own form elsewhere: forms cannot be nested."""
        address = reverse("admin:chatapp_modelconfig_test", args=[config.pk])
        return format_html('<button type="submit" class="button" formaction="{}">Test</button>', address)

    # --- the test --------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(require_POST(self.test_view))
        return [path("<uuid:config_id>/test/", test, name="chatapp_modelconfig_test"), *super().get_urls()]

    def test_view(self, request: HttpRequest, config_id: Any) -> HttpResponse:
        if not self.has_change_permission(request):
            raise PermissionDenied
        config = ModelConfig.objects.filter(pk=config_id).first()
        if config is None:
            raise Http404
        self._test(request, config)
        return redirect("admin:chatapp_modelconfig_changelist")

    @admin.action(description="Test: ask the endpoint and tell what it found", permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ModelConfig]) -> None:
        for config in queryset:
            self._test(request, config)

    def response_change(self, request: HttpRequest, obj: ModelConfig) -> HttpResponse:
        if "_test" in request.POST:
            self._test(request, obj)
            return redirect(request.path)
        return super().response_change(request, obj)

    def response_add(
        self, request: HttpRequest, obj: ModelConfig, post_url_continue: str | None = None
    ) -> HttpResponse:
        if "_test" in request.POST:
            self._test(request, obj)
            return redirect("admin:chatapp_modelconfig_change", obj.pk)
        return super().response_add(request, obj, post_url_continue)

    def _test(self, request: HttpRequest, config: ModelConfig) -> None:
        check = check_model(config)
        level = messages.SUCCESS if check.is_working else messages.ERROR
        self.message_user(request, f"{config.name}: {check.text}", level)
