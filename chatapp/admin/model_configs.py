"""The models operators offer: endpoint, write-only key, sizes, prices, and a Test that says what it found."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator
from django.views.decorators.debug import sensitive_post_parameters

from chatapp.actions.model_configs import save_model_config
from chatapp.admin.model_form import ModelConfigForm, has_key_here
from chatapp.admin.testing import Check, TestedAdmin
from chatapp.model_check import check_model
from chatapp.models import ModelConfig
from chatapp.policies import rules_for

SOURCES = {
    "model": "entered here",
    "environment": "from the environment",
    "detected": "told by the provider, or publicly known for this model",
    "default": "nothing is known about this model, so the default",
}
OWNED_BY_ENVIRONMENT = ("base_url", "model_id")


@admin.register(ModelConfig)
class ModelConfigAdmin(TestedAdmin[ModelConfig]):
    form = ModelConfigForm
    list_display = ("name", "endpoint", "window", "enabled", "is_default", "test_state", "test_button")
    list_filter = ("enabled", "kind", "origin")
    list_select_related = ("fast_model",)
    search_fields = ("name", "model_id", "base_url")
    actions = ("test_selected",)
    readonly_fields = ("origin", "effective_sizes", "last_test")

    def get_fieldsets(self, request: HttpRequest, obj: ModelConfig | None = None) -> Any:
        is_demo = obj is not None and obj.kind == ModelConfig.Kind.DEMO
        endpoint = () if is_demo else ("base_url", "model_id")
        key = ("api_key",) if has_key_here(obj) else ()
        removal = ("remove_api_key",) if key and obj and obj.api_key_encrypted else ()
        shown = ("origin", "last_test") if obj else ()
        sizes = ("context_size", "max_output_tokens", *(("effective_sizes",) if obj else ()))
        prices = ("Prices in US dollars", {"fields": ("input_price", "output_price", "cached_price")})
        return (
            (None, {"fields": ("name", *endpoint, *key, *removal, "enabled", "make_default", *shown)}),
            ("Sizes in tokens", {"fields": sizes}),
            *(() if is_demo else (prices,)),
            ("Use", {"fields": ("fast_model", "system_prompt", "tool_calling", "context_policy")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: ModelConfig | None = None) -> tuple[str, ...]:
        """What the environment says is changed there: here it would be undone by the next start."""
        owned = OWNED_BY_ENVIRONMENT if obj and obj.from_environment else ()
        return (*self.readonly_fields, *owned)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "fast_model":  # a plain choice: models are added in their own list
            return db_field.formfield()
        return super().formfield_for_dbfield(db_field, request, **kwargs)

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

    @admin.display(description="last test", ordering="tested_at")
    def test_state(self, config: ModelConfig) -> str:
        return Truncator(self.last_test(config)).words(14)

    # --- the test --------------------------------------------------------------------------------------

    def check_row(self, row: ModelConfig) -> Check:
        return check_model(row)

    @admin.action(description="Test: ask the endpoint and tell what it found", permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ModelConfig]) -> None:
        for config in queryset:
            self.tell_check(request, config)
