"""Adapters of django-allauth for sign-up, sign-in and sign-out."""

from __future__ import annotations

import logging
from typing import Any, cast
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.forms import AddEmailForm, LoginForm
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django import forms
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import password_validators_help_text_html
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chatapp.accounts.actions import delete_unconfirmed_claims
from chatapp.accounts.guessing import count_guess, remember_browser
from chatapp.accounts.invitations.signing_up import accept_invitation, invitation_in
from chatapp.accounts.models import User
from chatapp.accounts.selectors import owners_of
from chatapp.operations.configuration.changeable_settings import (
    current,
    has_mail,
    mail_connection,
    mail_sender,
)
from chatapp.operations.configuration.environment import source_of
from chatapp.operations.database import audit
from chatapp.operations.encryption import SecretUnreadable, decrypt, encrypt
from chatapp.operations.errors import NotFound
from chatapp.operations.models import AuditEvent
from memory.bounds import MAX_PASSWORD_CHARS

log = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth is not typed
    """Applies SIGNUP, which says who may sign up: open, closed, or invite (only with the link of an invitation)."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        if current("SIGNUP") == "closed":
            return False
        return invitation_in(request) is not None or current("SIGNUP") == "open"

    def clean_email(self, email: str) -> str:
        # allauth calls this for every form with an address, e.g. a password reset.
        if self.request.path == reverse("account_signup"):
            invitation = invitation_in(self.request)
            if invitation is not None and invitation.email != email.lower():
                raise ValidationError(_("This invitation is for another email address."))
        return cast(str, super().clean_email(email))

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Store the user and use up the invitation in one transaction. An invitation verifies the address."""
        super().save_user(request, user, form, commit=False)  # hashes the password, so not in the transaction
        is_invited = invitation_in(request) is not None
        try:
            with transaction.atomic():
                user.save()
                delete_unconfirmed_claims(email=user.email)
                if is_invited or current("SIGNUP") == "invite":
                    self._accept_invitation(request, user.email)
        except IntegrityError:  # somebody got an account with the address after the form was checked
            page = render(request, "account/signup_closed.html", {"is_taken": True}, status=409)
            raise ImmediateHttpResponse(page) from None
        return user

    def _accept_invitation(self, request: HttpRequest, email: str) -> None:
        try:
            accept_invitation(request, email)
        except NotFound:  # somebody else has just used it, or an operator has withdrawn it
            page = render(request, "account/signup_closed.html", status=409)
            raise ImmediateHttpResponse(page) from None
        self.stash_verified_email(request, email)

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("chat")

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail, or show a page that says that it was not sent."""
        try:
            if not has_mail():
                raise ConnectionError("EMAIL_URL is not set")
            super().send_mail(template_prefix, email, context)
        except OSError as error:  # SMTPException is one
            # The error's text may repeat the mail with its link, so log only its type.
            log.error("A mail was not sent: %s.", type(error).__name__)
            page = render(self.request, "account/no_mail.html", {"is_away": has_mail()}, status=503)
            raise ImmediateHttpResponse(page) from None

    def get_from_email(self) -> str:
        return mail_sender()

    def render_mail(self, *args: Any, **options: Any) -> Any:
        message = super().render_mail(*args, **options)
        # allauth would use the settings of the start, which operators may have changed since.
        message.connection = mail_connection()
        return message

    def get_reset_password_from_key_url(self, key: str) -> str:
        return at_public_address(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        return at_public_address(super().get_email_confirmation_url(request, emailconfirmation))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count a guess with our limits, because allauth's let a stranger lock out the owner. Raise ValidationError."""
        # allauth takes back the count in this attribute if the password is right.
        self._login_failed_rl_usage = count_guess(request, credentials.get("email", ""))
        if self._login_failed_rl_usage is None:
            raise self.validation_error("too_many_login_attempts")

    def post_login(self, request: HttpRequest, user: User, **details: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post_login(request, user, **details)
        remember_browser(request, response, user.pk)
        return response


def at_public_address(url: str) -> str:
    """Return the link of a mail with PUBLIC_URL as its host, whatever the Host header of the request."""
    # With a forged Host, we would mail a link that sends its key to a stranger's server.
    path = urlsplit(url)._replace(scheme="", netloc="").geturl()
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else url


class SignInForm(LoginForm):  # type: ignore[misc]
    """Offers to reset a password by mail only if mail is set up."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("login", "password"):
            self.fields[name].widget.attrs.pop("placeholder", None)  # it repeats the label
        if not has_mail():
            self.fields["password"].help_text = ""


class AddressForm(AddEmailForm):  # type: ignore[misc]
    """Refuses an address of another account. allauth accepts it, but making it the primary one would fail."""

    def clean_email(self) -> str:
        email = cast(str, super().clean_email())
        if owners_of(email) - {self.user.pk}:
            # This reveals to users who else has an account. Open sign-up reveals that to anybody.
            raise get_adapter().validation_error("email_taken")
        return email


class BoundedBackend(AuthenticationBackend):  # type: ignore[misc]
    """Refuses a password that is longer than allowed, before hashing it."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> AbstractBaseUser | None:
        if len(credentials.get("password") or "") > MAX_PASSWORD_CHARS:
            return None
        return cast("AbstractBaseUser | None", super().authenticate(request, **credentials))


class SessionsAdapter(DefaultUserSessionsAdapter):  # type: ignore[misc]
    def end_sessions(self, sessions: list[UserSession]) -> None:
        with transaction.atomic():
            super().end_sessions(sessions)
            for session in sessions:
                audit.record(AuditEvent.Kind.SESSION_ENDED, user_id=session.user_id)


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Stores the secrets of authenticator apps and recovery codes encrypted."""

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret, or show a page that says that it cannot be read."""
        try:
            return decrypt(encrypted_text)
        except SecretUnreadable as error:
            log.error("A second factor cannot be checked. %s", error.message)
            page = render(self.request, "mfa/unreadable.html", status=503)
            raise ImmediateHttpResponse(page) from None


class SetupForm(forms.Form):
    """Parses the form of the first admin; `claim_setup_link` checks address and password."""

    email = forms.EmailField(
        label=_("Email"), widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=MAX_PASSWORD_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=password_validators_help_text_html,
    )
    retention_days = forms.ChoiceField(
        label=_("How long are chats kept?"),
        required=False,
        choices=[
            ("30", _("30 days")),
            ("90", _("90 days")),
            ("365", _("One year")),
            ("0", _("Until somebody deletes them")),
        ],
        help_text=_(
            "Counted from the last message. The memory of a chat stays. You can change it later, under Settings."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        """Ask for the retention period unless the environment sets it."""
        super().__init__(*args, **options)
        if source_of("RETENTION_DAYS"):
            # The environment overrides the stored value, so a choice here would have no effect.
            del self.fields["retention_days"]
