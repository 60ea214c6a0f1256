"""The form of one model: a key that goes in and never comes out, sizes, prices, policy."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from chatapp.admin.policy_field import POLICY_HELP, check_policy_field
from chatapp.admin.yaml_field import YamlField
from chatapp.models import ModelConfig


def has_key_here(config: ModelConfig | None) -> bool:
    """The key of a row from the environment is changed there, and the Demo model has none."""
    return config is None or not (config.from_environment or config.kind == ModelConfig.Kind.DEMO)


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
        field_classes: ClassVar = {"context_policy": YamlField}
        help_texts: ClassVar = {"context_policy": POLICY_HELP}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["make_default"].initial = self.instance.is_default
        if self.instance.api_key_encrypted:
            self.fields[
                "api_key"
            ].help_text = "A key is stored, encrypted; it is never shown. Empty: keep it."
        else:
            self.fields["api_key"].help_text = "No key is stored."
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
