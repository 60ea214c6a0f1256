"""Model configurations, and the ledger of model calls."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from chatapp.operations.database.ids import new_id


def endpoint_address(url: str) -> None:
    """Raise ValidationError unless `url` is an HTTP address. Unlike Django's validator, allow `http://vllm:8000/v1`."""
    try:
        parts = urlsplit(url)
        # Reading a port that is not a number, or beyond 65,535, raises ValueError.
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or parts.username or parts.query or parts.fragment or any(c.isspace() for c in url):
        raise ValidationError(
            gettext("Enter an address like https://api.example.com/v1, without user name or query.")
        )


def _price(name: str) -> models.DecimalField[Any, Any]:
    return models.DecimalField(
        name,
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Per million tokens. Empty: looked up.",
    )


class ModelConfig(models.Model):
    class Kind(models.TextChoices):
        OPENAI = "openai", "OpenAI-compatible endpoint"
        DEMO = "demo", "Demo (built in, no key needed)"

    class ToolCalling(models.TextChoices):
        AUTO = "auto", "detected automatically"
        NATIVE = "native", "the endpoint's own"
        PROMPTED = "prompted", "described in the prompt"

    class Origin(models.TextChoices):
        """Who maintains endpoint, model and key of this row."""

        OPERATOR = "operator", "the admin panel"
        ENVIRONMENT = "environment", "the environment (LLM_MODEL)"
        ENVIRONMENT_FAST = "environment_fast", "the environment (FAST_LLM_MODEL)"
        OLLAMA = "ollama", "found in a local Ollama"
        BUILT_IN = "built_in", "built in"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200, unique=True, help_text="What users choose.")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.OPENAI)
    model_id = models.CharField("model", max_length=200, help_text="The endpoint's own name for it.")
    base_url = models.CharField(
        "address",
        blank=True,
        max_length=500,
        validators=[endpoint_address],
        help_text="Up to and including /v1. Empty: api.openai.com.",
    )
    api_key_encrypted = models.TextField(blank=True, editable=False)
    context_size = models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect.")
    max_output_tokens = models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect.")
    detected_context_size = models.PositiveIntegerField(default=0, editable=False)
    detected_max_output_tokens = models.PositiveIntegerField(default=0, editable=False)
    named_window = models.JSONField(default=dict, editable=False)
    """The smaller window that the provider named when it refused a request; see `chatapp.providers.named_windows`."""
    input_price = _price("input price")
    output_price = _price("output price")
    cached_price = _price("cached input price")
    fast_model = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        help_text="Used for summaries and titles. Empty: itself, and no titles are written.",
    )
    context_policy = models.JSONField(default=dict, blank=True)
    system_prompt = models.TextField(blank=True, help_text="Empty: the built-in one.")
    tool_calling = models.CharField(
        max_length=10,
        choices=ToolCalling,
        default=ToolCalling.AUTO,
        blank=True,
        help_text="How the model calls tools. Prompted works with models that know nothing of them.",
    )
    token_ratio = models.FloatField(default=1.0, editable=False)
    token_ratio_samples = models.PositiveIntegerField(default=0, editable=False)
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField("default", default=False)
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.OPERATOR, editable=False)
    test_result = models.TextField(blank=True, editable=False)
    tested_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "model"
        ordering = ["-is_default", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="one_default_model"
            ),
            # Several processes may start at once, but each of these rows must exist only once.
            models.UniqueConstraint(
                fields=["origin"],
                condition=models.Q(origin__in=["environment", "environment_fast", "built_in"]),
                name="one_model_per_origin",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse a price without effect: of input or output alone, or of cached input without these two."""
        prices = {"input_price": self.input_price, "output_price": self.output_price}
        missing = [name for name, price in prices.items() if price is None]
        is_partial = len(missing) == 1 or (missing and self.cached_price is not None)
        if is_partial and self.kind != self.Kind.DEMO:
            told = gettext("Enter prices for both input and output; one without the other does not count.")
            raise ValidationError(dict.fromkeys(missing, told))

    @property
    def from_environment(self) -> bool:
        return self.origin in {self.Origin.ENVIRONMENT, self.Origin.ENVIRONMENT_FAST}


class Usage(models.Model):
    """One row per model call, with the price at that time."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(
        "chatapp.Conversation", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    run = models.ForeignKey("chatapp.Run", null=True, on_delete=models.SET_NULL, related_name="usage_rows")
    model = models.ForeignKey(ModelConfig, null=True, on_delete=models.SET_NULL, related_name="+")
    # Copied, because the row of the model may be deleted.
    model_name = models.CharField(max_length=200)
    purpose = models.CharField(max_length=12)
    input_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    kept_out_tokens = models.PositiveIntegerField(
        default=0, help_text="What compaction kept out of the request."
    )
    compaction_saved = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="What these would have cost at this call's mix."
    )
    cache_saved = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        null=True,
        help_text="How much more the cached tokens would have cost at the uncached price.",
    )
    exact = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "usage"
        indexes = [
            # Sums a user's usage in a period.
            models.Index(fields=["user", "created_at"], name="usage_by_user"),
            # Finds background calls of a conversation that belong to no run yet.
            models.Index(fields=["conversation"], condition=Q(run=None), name="usage_not_shown"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class UsageHour(models.Model):
    """The usage of all users in a past hour. The panel reads these sums instead of a million calls."""

    hour = models.DateTimeField(primary_key=True)
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    cost = models.DecimalField(max_digits=20, decimal_places=8, null=True)
