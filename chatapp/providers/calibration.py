"""Collects token counts from providers, and calibrates every few seconds, because all answers update the same rows."""

from __future__ import annotations

import threading
from collections import defaultdict
from uuid import UUID

from django.db import transaction

from chatapp.providers.models import ModelConfig
from memory.tokens import Calibration

STORE_EVERY_S = 5.0
MOST_GATHERED = 1_000
"""Of one model, between two writes; a calibration is stable long before."""

_gathered: dict[UUID, list[tuple[int, int]]] = defaultdict(list)
_lock = threading.Lock()


def note_token_counts(config_id: UUID, estimated: int, reported: int) -> None:
    """Record that the provider counted `reported` tokens for our estimate of `estimated`."""
    with _lock:
        if len(_gathered[config_id]) < MOST_GATHERED:
            _gathered[config_id].append((estimated, reported))


def store_token_counts() -> None:
    """Update the calibration of each model with the recorded counts. Keep counts that cannot be stored."""
    # Copy the keys, because answers add models meanwhile.
    for config_id in list(_gathered):
        with _lock:
            counts = _gathered.pop(config_id, [])
        try:
            _learn(config_id, counts)
        except BaseException:
            with _lock:
                # Put them before newer counts, to keep the order of the answers.
                _gathered[config_id][:0] = counts
            raise


def _learn(config_id: UUID, counts: list[tuple[int, int]]) -> None:
    with transaction.atomic():
        # Other processes update the same row.
        config = ModelConfig.objects.select_for_update().filter(pk=config_id).first()
        if config is None:
            return
        learned = Calibration(config.token_ratio, config.token_ratio_samples)
        for estimated, reported in counts:
            learned = learned.update(estimated, reported)
        ModelConfig.objects.filter(pk=config_id).update(
            token_ratio=learned.ratio, token_ratio_samples=learned.samples
        )
