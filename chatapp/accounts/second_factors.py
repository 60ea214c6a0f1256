"""Removes the second factors of a user who lost them, and mails the user about it."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext

from chatapp.accounts.actions import remove_second_factors
from chatapp.accounts.mails import was_mailed
from chatapp.accounts.models import User


def remove_lost_factors(*, user: User, actor_id: UUID | None = None) -> int:
    """Remove all second factors of the user, end the user's sessions, and return how many factors there were."""
    count = remove_second_factors(user=user, actor_id=actor_id)
    if count:
        # Mail after the commit. The removal may not have been the owner's wish, and the mail reports it to them.
        with translation.override(user.language or settings.LANGUAGE_CODE):
            subject = gettext("Your second factors were removed")
            body = render_to_string(
                "account/email/second_factors_removed.txt",
                {"email": user.email, "product_name": "Palimpsest"},
            )
        was_mailed(user.email, subject, body, what="The mail about removed second factors")
    return count
