"""Sends the mails that allauth does not send."""

from __future__ import annotations

import logging

from django.core.mail import send_mail

from chatapp.operations.configuration.changeable_settings import has_mail, mail_connection, mail_sender

log = logging.getLogger(__name__)


def was_mailed(email: str, subject: str, body: str, *, what: str) -> bool:
    """Send a mail, which the log calls `what`, and return whether that worked; False if no mail server is set up.

    Call this after the commit: a slow mail server must not block the database.
    """
    if not has_mail():
        return False
    try:
        send_mail(subject, body, mail_sender(), [email], connection=mail_connection())
    except OSError as error:  # SMTPException is one
        # The error's text may repeat the mail with its link, so log only its type.
        log.error("%s was not sent: %s.", what, type(error).__name__)
        return False
    return True
