"""Invites a person: stores the invitation, and mails its link or returns it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext

from chatapp.accounts.invitations.actions import create_invitation
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.mails import was_mailed
from chatapp.accounts.models import User
from chatapp.operations import clock

LINK_KEY = "invitation"
"""Query parameter of the link. Logs omit its value (`operations/monitoring/logs.py`)."""


@dataclass(frozen=True, slots=True)
class Invited:
    """A new invitation. `link` is None if it was mailed, and is not stored anywhere."""

    invitation: Invitation
    link: str | None


def invite(*, email: str, invited_by: User, own_address: str) -> Invited:
    """Return the invitation, with its link if no mail was sent. Raise what `create_invitation` raises.

    `own_address` is the base of the link if PUBLIC_URL is not set.
    """
    invitation, token = create_invitation(email=email, invited_by=invited_by, now=clock.now())
    path = f"{reverse('account_signup')}?{urlencode({LINK_KEY: token})}"
    link = f"{settings.PUBLIC_URL or own_address}{path}"
    # Mail after the commit: a slow mail server must not block the database, and a mail cannot be rolled back.
    return Invited(invitation, None if _was_mailed(invitation, link, invited_by.language) else link)


def _was_mailed(invitation: Invitation, link: str, language: str) -> bool:
    """Mail the link and return whether that worked. Use the inviter's language, as the invited person's is unknown."""
    with translation.override(language or settings.LANGUAGE_CODE):
        subject = gettext("An invitation to Palimpsest")
        until = date_format(invitation.expires_at.astimezone(UTC), gettext("j F Y, H:i"))
        words = {"link": link, "email": invitation.email, "until": until, "product_name": "Palimpsest"}
        body = render_to_string("account/email/invitation.txt", words)
    return was_mailed(invitation.email, subject, body, what="An invitation")
