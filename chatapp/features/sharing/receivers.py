"""Blanks the title of a shared link when its text is forgotten."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chatapp.features.sharing.actions import forget_titles
from chatapp.forgetting.actions.collecting import Work
from chatapp.forgetting.actions.forget import words_forgotten


@receiver(words_forgotten)
def forget_with_words(sender: Any, *, work: Work, **_: Any) -> None:
    forget_titles(work)
