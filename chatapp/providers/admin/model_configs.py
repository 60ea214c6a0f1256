"""The admin pages of models. A key is stored and never shown."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from chatapp.accounts.group_access.admin import KeepsRestrictions
from chatapp.context.admin import POLICY_HELP, PolicyField, check_policy_field
from chatapp.context.policies import rules_for
from chatapp.operations import clock
from chatapp.operations.admin.fields import bound_fields
from chatapp.operations.admin.pages import TestedAdmin
from chatapp.operations.translations import translate_sentence
from chatapp.providers.actions import make_default, save_model_config
from chatapp.providers.admin.connect import ConnectPage
from chatapp.providers.model_check import Check, check_model
from chatapp.providers.models import ModelConfig
from chatapp.providers.named_windows import describe_named_window
from chatapp.providers.selectors import has_real_default
from memory.bounds import MAX_PROMPT_CHARS, MAX_TOKENS


def has_key_here(config: ModelConfig | None) -> bool:
    """Return whether the key is edited here: models of the environment and the Demo model have no editable key."""
    return config is None or not (config.from_environment or config.kind == ModelConfig.Kind.DEMO)


def _comes_back(config: ModelConfig) -> bool:
    """Return whether the next start would create the row again."""
    if config.origin == ModelConfig.Origin.OLLAMA:
        return config.base_url == settings.OLLAMA_URL
    return config.from_environment or config.origin == ModelConfig.Origin.BUILT_IN


class ModelConfigForm(forms.ModelForm):  # type: ignore[type-arg]
    api_key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password", "class": "vTextField"}
        ),
    )
    remove_api_key = forms.BooleanField(label=_("Remove the stored key"), required=False)
    make_default = forms.BooleanField(
        label=_("Default"),
        required=False,
        help_text=_("New conversations begin with this model."),
        # Another operator may choose a default while this page is open.
        show_hidden_initial=True,
    )

    class Meta:
        model = ModelConfig
        fields = (
            "name",
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
            "tool_calling",
            "enabled",
        )
        field_classes: ClassVar = {"context_policy": PolicyField}
        help_texts: ClassVar = {"context_policy": POLICY_HELP}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bound_fields(
            self, context_size=MAX_TOKENS, max_output_tokens=MAX_TOKENS, system_prompt=MAX_PROMPT_CHARS
        )
        self.fields["make_default"].initial = self.instance.is_default
        if self.instance.api_key_encrypted:
            kept = gettext("A key is stored, encrypted; it is never shown. Empty: keep it.")
            self.fields["api_key"].help_text = kept
        else:
            self.fields["api_key"].help_text = gettext("No key is stored.")
            del self.fields["remove_api_key"]
        if not has_key_here(self.instance):
            self.fields.pop("remove_api_key", None)
            del self.fields["api_key"]
        if "fast_model" in self.fields:
            others = ModelConfig.objects.exclude(pk=self.instance.pk)
            self.fields["fast_model"].queryset = others  # type: ignore[attr-defined]

    def clean_context_policy(self) -> dict[str, Any]:
        return check_policy_field(self.cleaned_data["context_policy"] or {}, "model")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self._check_key(cleaned)
        if cleaned.get("make_default") and not cleaned.get("enabled"):
            self.add_error("enabled", gettext("The default model has to be enabled."))
        is_changed = "make_default" in self.changed_data
        if is_changed and self.instance.is_default and not cleaned.get("make_default"):
            self.add_error(
                "make_default", gettext("Choose another default first, on the page of that model.")
            )
        return cleaned

    def _check_key(self, cleaned: dict[str, Any]) -> None:
        """Refuse a new address with the stored key, which could be sent to a stranger there."""
        if cleaned.get("remove_api_key") and cleaned.get("api_key"):
            self.add_error("remove_api_key", gettext("Either remove the key or enter a new one."))
        if "base_url" not in self.changed_data or not self.instance.api_key_encrypted:
            return
        if not cleaned.get("api_key") and not cleaned.get("remove_api_key"):
            told = gettext("The address has changed: enter its key, or remove the stored key.")
            self.add_error("api_key", told)

    @property
    def new_api_key(self) -> str | None:
        """Return the key to store; None keeps the stored one."""
        if self.cleaned_data.get("remove_api_key"):
            return ""
        return self.cleaned_data.get("api_key") or None


SOURCES = {
    "model": gettext_noop("entered here"),
    "environment": gettext_noop("from the environment"),
    "detected": gettext_noop("reported by the provider, or publicly known for this model"),
    "default": gettext_noop("nothing is known about this model, so the default"),
}
OWNED_BY_ENVIRONMENT = ("base_url", "model_id")


@admin.register(ModelConfig)
class ModelConfigAdmin(ConnectPage, KeepsRestrictions, TestedAdmin[ModelConfig]):
    form = ModelConfigForm
    list_display = ("name", "endpoint", "window", "enabled", "is_default", "test_state", "test_button")
    list_filter = ("enabled", "kind", "origin")
    list_select_related = ("fast_model",)
    search_fields = ("name", "model_id", "base_url")
    actions = ("test_selected",)
    change_list_template = "admin/chatapp/modelconfig/change_list.html"
    readonly_fields = ("origin", "effective_sizes", "last_test")

    def get_fieldsets(self, request: HttpRequest, obj: ModelConfig | None = None) -> Any:
        is_demo = obj is not None and obj.kind == ModelConfig.Kind.DEMO
        endpoint = () if is_demo else ("base_url", "model_id")
        key = ("api_key",) if has_key_here(obj) else ()
        removal = ("remove_api_key",) if key and obj and obj.api_key_encrypted else ()
        shown = ("origin", "last_test") if obj else ()
        sizes = ("context_size", "max_output_tokens", *(("effective_sizes",) if obj else ()))
        prices = (_("Prices in US dollars"), {"fields": ("input_price", "output_price", "cached_price")})
        return (
            (None, {"fields": ("name", *endpoint, *key, *removal, "enabled", "make_default", *shown)}),
            (_("Sizes in tokens"), {"fields": sizes}),
            *(() if is_demo else (prices,)),
            (_("Use"), {"fields": ("fast_model", "system_prompt", "tool_calling", "context_policy")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: ModelConfig | None = None) -> tuple[str, ...]:
        """Show fields of the environment read-only: the next start would undo a change."""
        owned = OWNED_BY_ENVIRONMENT if obj and obj.from_environment else ()
        return (*self.readonly_fields, *owned)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "fast_model":  # a plain select: models are added in their own list
            return db_field.formfield()
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: ModelConfig | None = None) -> bool:
        """Refuse to delete the default, and rows that the next start would create again; these can be disabled."""
        is_needed = obj is not None and (obj.is_default or _comes_back(obj))
        return not is_needed and super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> Any:
        """Remove the bulk deletion, which does not check `has_delete_permission` for each row."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def save_model(self, request: HttpRequest, obj: ModelConfig, form: Any, change: bool) -> None:
        """Save the row. It becomes the default only if it passes the test that follows."""
        asked = form.cleaned_data["make_default"] and "make_default" in form.changed_data
        appeared = obj.enabled and "enabled" in form.changed_data if change else obj.enabled
        # Store this for the test, which runs after the transaction: a server may take a minute to respond.
        request.leads_if_working = not obj.is_default and (  # type: ignore[attr-defined]
            asked or (appeared and obj.kind != ModelConfig.Kind.DEMO and not has_real_default())
        )
        save_model_config(config=obj, api_key=form.new_api_key, replaces_demo=False)

    # --- display ---------------------------------------------------------------------------------------

    @admin.display(description=_("endpoint"))
    def endpoint(self, config: ModelConfig) -> str:
        if config.kind == ModelConfig.Kind.DEMO:
            return gettext("built in")
        place = {"model": config.model_id, "address": config.base_url or "api.openai.com"}
        return gettext("%(model)s at %(address)s") % place

    @admin.display(description=_("context size"))
    def window(self, config: ModelConfig) -> str:
        return f"{rules_for(config).budget.context_size:,}"

    @admin.display(description=_("In effect"))
    def effective_sizes(self, config: ModelConfig) -> str:
        resolved = rules_for(config).resolved
        budget = resolved.budget
        lines = [
            gettext("Context size %(size)s: %(source)s.")
            % {"size": f"{budget.context_size:,}", "source": gettext(SOURCES[resolved.context_size_from])},
            gettext("Output limit %(size)s: %(source)s.")
            % {
                "size": f"{budget.max_output_tokens:,}",
                "source": gettext(SOURCES[resolved.max_output_tokens_from]),
            },
            gettext("Budget for history and question: %(size)s.") % {"size": f"{budget.input_tokens:,}"},
        ]
        if named := describe_named_window(config.named_window, clock.now()):
            lines.append(translate_sentence(named))
        warned = translate_sentence(resolved.warning or "")
        warning = format_html('<p class="errornote">{}</p>', warned) if warned else ""
        return format_html("{}{}", format_html_join("", "<p>{}</p>", ((line,) for line in lines)), warning)

    @admin.display(description=_("last test"), ordering="tested_at")
    def last_test(self, config: ModelConfig) -> str:
        if config.tested_at is None:
            return gettext("never tested")
        return f"{config.tested_at:%Y-%m-%d %H:%M} UTC: {translate_sentence(config.test_result)}"

    @admin.display(description=_("last test"), ordering="tested_at")
    def test_state(self, config: ModelConfig) -> str:
        # Truncate by characters, too, because Chinese has no blanks between words.
        return Truncator(Truncator(self.last_test(config)).words(14)).chars(140)

    # --- the test --------------------------------------------------------------------------------------

    def check_row(self, row: ModelConfig) -> Check:
        return check_model(row, lambda config: rules_for(config).resolved)

    def needs_check(self, request: HttpRequest) -> bool:
        return super().needs_check(request) or getattr(request, "leads_if_working", False)

    def tell_check(self, request: HttpRequest, row: ModelConfig) -> Check:
        check = super().tell_check(request, row)
        if getattr(request, "leads_if_working", False):
            if check.is_working:
                make_default(config=row)
            else:
                told = gettext("%(model)s did not become the default, because it did not pass its test.")
                self.message_user(request, told % {"model": row}, messages.WARNING)
        return check

    @admin.action(description=_("Test the endpoint and show the result"), permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ModelConfig]) -> None:
        for config in queryset:
            self.tell_check(request, config)
