"""The page that connects a model: address, offered models, a test, and a stored row only after a successful test."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from agents.types import ListedModel
from chatapp.context.policies import rules_for
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.encryption import SecretUnreadable, decrypt, encrypt
from chatapp.providers.actions import free_name
from chatapp.providers.detection import EMBEDDING_MODEL
from chatapp.providers.model_check import Check, connect_model, list_offered
from chatapp.providers.models import ModelConfig, endpoint_address
from chatapp.providers.presets import OTHER, Preset, presets
from chatapp.providers.selectors import has_real_default
from memory.bounds import MAX_TOKENS

MAX_KEY_CHARS = 1_000
MAX_LISTED = 1_000


class ConnectForm(forms.Form):
    """`kept_key` is the key from the previous page, encrypted together with the address it was entered for."""

    base_url = forms.CharField(label=_("Address"), max_length=500, validators=[endpoint_address])
    api_key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=MAX_KEY_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    kept_key = forms.CharField(required=False, max_length=10_000, widget=forms.HiddenInput)
    listed_model = forms.CharField(label=_("Model"), required=False, max_length=200, widget=forms.Select)
    model_id = forms.CharField(label=_("Model"), required=False, max_length=200)
    name = forms.CharField(
        label=pgettext_lazy("of a thing", "Name"),
        required=False,
        max_length=200,
        help_text=_("What users see. Empty: the model's own name."),
    )
    context_size = forms.IntegerField(
        label=_("Context size"),
        required=False,
        min_value=0,
        max_value=MAX_TOKENS,
        help_text=_("In tokens. If empty, detected automatically."),
    )
    max_output_tokens = forms.IntegerField(
        label=_("Longest answer"),
        required=False,
        min_value=0,
        max_value=MAX_TOKENS,
        help_text=_("In tokens. If empty, detected automatically."),
    )
    make_default = forms.BooleanField(label=_("New conversations begin with it"), required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("name") and ModelConfig.objects.filter(name=cleaned["name"]).exists():
            self.add_error("name", gettext("There is a model of this name already."))
        chosen = cleaned.get("model_id") or cleaned.get("listed_model") or ""
        if "_connect" in self.data and not chosen and "model_id" not in self.errors:
            self.add_error("model_id", gettext("Choose a model, or enter the name of one."))
        return cleaned

    @property
    def key(self) -> str:
        """Return the key that was entered now, or on a previous page for the same address."""
        address, kept = _read_kept(self.cleaned_data.get("kept_key", ""))
        # Send a key only to the address it was entered for.
        is_kept = address == self.cleaned_data["base_url"]
        return self.cleaned_data.get("api_key") or (kept if is_kept else "")

    def as_config(self) -> ModelConfig:
        """Return the row that the form describes, unsaved."""
        cleaned = self.cleaned_data
        model_id = cleaned["model_id"] or cleaned["listed_model"]
        return ModelConfig(
            name=cleaned["name"] or free_name(model_id),
            base_url=cleaned["base_url"],
            model_id=model_id,
            api_key_encrypted=encrypt(self.key.strip()),
            context_size=cleaned["context_size"] or 0,
            max_output_tokens=cleaned["max_output_tokens"] or 0,
            is_default=cleaned["make_default"],
        )

    def show_offered(self, offered: list[ListedModel]) -> None:
        """Offer the models that the address lists, and keep the key for the next page."""
        names = [(model.model_id, _with_window(model)) for model in offered[:MAX_LISTED]]
        self.fields["listed_model"].widget.choices = names
        kept = encrypt(json.dumps([self.cleaned_data["base_url"], self.key])) if self.key else ""
        self.data = {**dict(self.data.items()), "kept_key": kept}


def _read_kept(kept: str) -> tuple[str, str]:
    """Return (address, key) of a previous page; empty strings for an invalid value."""
    try:
        address, key = json.loads(decrypt(kept) or '["", ""]')
    except (SecretUnreadable, ValueError, TypeError):
        return "", ""
    return str(address), str(key)


def _with_window(model: ListedModel) -> str:
    size = gettext("(%(count)s tokens)") % {"count": f"{model.context_size:,}"} if model.context_size else ""
    return f"{model.model_id} {size}".strip()


class ConnectPage(admin.ModelAdmin):  # type: ignore[type-arg]
    """Adds the page to the admin of models."""

    def get_urls(self) -> list[URLPattern]:
        connect = self.admin_site.admin_view(self.connect_view)
        # This precedes Django's URLs, the last of which matches any path as a key.
        return [path("connect/", connect, name="chatapp_modelconfig_connect"), *super().get_urls()]

    @method_decorator(sensitive_post_parameters("api_key", "kept_key"))
    def connect_view(self, request: HttpRequest) -> HttpResponse:
        """List the models of an address, or test one of them and store it if it responds."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._show(request, None)
        form = ConnectForm(request.POST)
        if not form.is_valid():
            return self._show(request, form)
        check = None
        if "_connect" in request.POST:
            config = form.as_config()
            try:
                check = connect_model(config, lambda row: rules_for(row).resolved)
            except IntegrityError:  # the name was free when the form was checked
                form.add_error("name", gettext("There is a model of this name already."))
            else:
                if check.is_working:
                    return self._connected(request, config)
        listed_from = ModelConfig(base_url=form.cleaned_data["base_url"], api_key_encrypted=encrypt(form.key))
        offered, problem = list_offered(listed_from)
        form.show_offered([model for model in offered if not EMBEDDING_MODEL.search(model.model_id)])
        return self._show(request, form, offered=len(offered), problem=problem, check=check)

    def _connected(self, request: HttpRequest, config: ModelConfig) -> HttpResponse:
        with transaction.atomic():
            self.log_addition(request, config, [{"added": {}}])
        return HttpResponseRedirect(f"{reverse('admin:chatapp_modelconfig_connect')}?connected={config.pk}")

    def _show(
        self,
        request: HttpRequest,
        form: ConnectForm | None,
        *,
        offered: int = 0,
        problem: str = "",
        check: Check | None = None,
    ) -> HttpResponse:
        cards = presets(settings.OLLAMA_URL)
        chosen = next((card for card in cards if card.slug == request.GET.get("preset")), None)
        if form is None and chosen is not None:
            form = _form_of(chosen)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Connect a model"),
            "presets": cards,
            "chosen": chosen or (OTHER if form else None),
            "form": form,
            "offered": offered,
            "problem": problem,
            "check": check,
            "connected": _connected_row(request),
        }
        status = 200 if form is None or not form.is_bound or form.is_valid() else 400
        return TemplateResponse(request, "admin/chatapp/modelconfig/connect.html", context, status=status)


def _form_of(preset: Preset) -> ConnectForm:
    form = ConnectForm(initial={"base_url": preset.base_url, "make_default": not has_real_default()})
    form.fields["base_url"].widget.attrs["placeholder"] = preset.example
    return form


def _connected_row(request: HttpRequest) -> ModelConfig | None:
    """Return the model that was just connected, to show what was found."""
    pk = uuid_or_none(request.GET.get("connected", ""))
    return ModelConfig.objects.filter(pk=pk).first() if pk else None
