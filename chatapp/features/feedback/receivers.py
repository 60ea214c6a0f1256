"""Adds ratings to account exports, and deletes them when a user forgets everything."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chatapp.accounts.archive import adds_to_archive
from chatapp.accounts.models import User
from chatapp.features.feedback.actions import delete_ratings
from chatapp.features.feedback.selectors import rating_files
from chatapp.forgetting.actions.forget_all import everything_forgotten


@receiver(everything_forgotten)
def forget_ratings(sender: Any, *, user: User, **_: Any) -> None:
    delete_ratings(user)


adds_to_archive(rating_files)
