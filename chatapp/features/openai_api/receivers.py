"""Forgets what a client stored with the response of a forgotten turn."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chatapp.features.openai_api.actions import forget_metadata
from chatapp.forgetting.actions.collecting import Work
from chatapp.forgetting.actions.forget import words_forgotten


@receiver(words_forgotten)
def forget_with_turns(sender: Any, *, work: Work, **_: Any) -> None:
    forget_metadata(work.changed)
