"""What a model's own token counts teach the estimator."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from chatapp.models import ModelConfig
from memory.tokens import Calibration


def record_token_counts(*, config_id: UUID, estimated: int, reported: int) -> None:
    """`estimated` is the uncalibrated estimate of the request that the provider counted as `reported`."""
    with transaction.atomic():
        config = ModelConfig.objects.select_for_update().filter(pk=config_id).first()
        if config is None:
            return
        learned = Calibration(config.token_ratio, config.token_ratio_samples).update(estimated, reported)
        ModelConfig.objects.filter(pk=config_id).update(
            token_ratio=learned.ratio, token_ratio_samples=learned.samples
        )
