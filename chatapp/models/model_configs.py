"""The operator's row for each model that can be talked to."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models

from chatapp.models.identity import new_id


class ModelConfig(models.Model):
    class Kind(models.TextChoices):
        OPENAI = "openai", "OpenAI-compatible endpoint"
        DEMO = "demo", "Demo (built in, no key needed)"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200, unique=True, help_text="What users choose.")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.OPENAI)
    model_id = models.CharField("model", max_length=200, help_text="The endpoint's own name for it.")
    base_url = models.URLField(
        "address", blank=True, max_length=500, help_text="Up to and including /v1. Empty: api.openai.com."
    )
    api_key_encrypted = models.TextField(blank=True, editable=False)
    context_size = models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect.")
    max_output_tokens = models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect.")
    detected_context_size = models.PositiveIntegerField(default=0, editable=False)
    detected_max_output_tokens = models.PositiveIntegerField(default=0, editable=False)
    input_price = models.DecimalField(
        "input price",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Per million tokens. Empty: looked up.",
    )
    output_price = models.DecimalField(
        "output price",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Per million tokens. Empty: looked up.",
    )
    cached_price = models.DecimalField(
        "cached input price",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Per million tokens. Empty: looked up.",
    )
    fast_model = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, help_text="Used for summaries. Empty: itself."
    )
    context_policy = models.JSONField(default=dict, blank=True)
    system_prompt = models.TextField(blank=True, help_text="Empty: the built-in one.")
    token_ratio = models.FloatField(default=1.0, editable=False)
    token_ratio_samples = models.PositiveIntegerField(default=0, editable=False)
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField("default", default=False)
    from_environment = models.BooleanField(default=False, editable=False)
    test_result = models.TextField(blank=True, editable=False)
    tested_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-is_default", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="one_default_model"
            ),
        ]

    def __str__(self) -> str:
        return self.name
