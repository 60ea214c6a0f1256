"""Sends the mails that are not allauth's."""

from __future__ import annotations

import logging

from django.core.mail import send_mail

from chatapp.operations.changeable_settings import has_mail, mail_connection, mail_sender

log = logging.getLogger(__name__)


def was_mailed(email: str, subject: str, body: str, *, what: str) -> bool:
    """Send a mail, which the log calls `what`, and return whether that worked; False where no mail is set up.

    For the time after the commit: a slow mail server must not hold the database.
    """
    if not has_mail():
        return False
    try:
        send_mail(subject, body, mail_sender(), [email], connection=mail_connection())
    except OSError as error:  # SMTPException is one
        # Not the error's words, which may repeat the mail with its link.
        log.error("%s was not sent: %s.", what, type(error).__name__)
        return False
    return True
