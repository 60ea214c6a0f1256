"""Signing up, in and out with django-allauth; connections end when the rights behind them do."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.signals import password_changed, password_reset, password_set
from allauth.usersessions.models import UserSession
from django import forms
from django.conf import settings
from django.contrib.auth.password_validation import password_validators_help_text_html
from django.contrib.auth.signals import user_logged_out
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from chatapp.accounts.models import ApiToken, User
from chatapp.realtime.hub import close_user

INVITATION_SALT = "palimpsest.invitation"
INVITATION_DAYS = 7
INVITATION_KEY = "invitation"
FIELDS_WITH_RIGHTS = frozenset({"is_active", "is_staff", "is_superuser", "password"})


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc] # allauth is not typed
    """SIGNUP decides who may sign up: open, closed, or invite (whoever holds an operator's signed link)."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        if settings.SIGNUP == "open":
            return True
        return settings.SIGNUP == "invite" and invited_email(request) is not None

    def clean_email(self, email: str) -> str:
        if settings.SIGNUP == "invite" and self.request.path == reverse("account_signup"):
            invited = invited_email(self.request)
            if invited is None or invited != email.lower():
                raise ValidationError("This invitation is for another e-mail address.")
        return cast(str, super().clean_email(email))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("chat")


def invitation_path(email: str) -> str:
    """Return the path where the invited person signs up, valid for a week and until the account exists."""
    signed = signing.dumps(email.strip().lower(), salt=INVITATION_SALT)
    return f"{reverse('account_signup')}?{urlencode({INVITATION_KEY: signed})}"


def invited_email(request: HttpRequest) -> str | None:
    """Return the invited address, if any. It is kept in the session, because the form loses the query."""
    signed = request.GET.get(INVITATION_KEY) or request.session.get(INVITATION_KEY, "")
    try:
        email = signing.loads(signed, salt=INVITATION_SALT, max_age=INVITATION_DAYS * 86_400)
    except signing.BadSignature:
        return None
    request.session[INVITATION_KEY] = signed
    return str(email)


class SetupForm(forms.Form):
    """Parses the form of the first admin; `claim_setup_link` checks address and password."""

    email = forms.EmailField(
        label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    name = forms.CharField(
        label="Name", required=False, max_length=150, widget=forms.TextInput(attrs={"autocomplete": "name"})
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=password_validators_help_text_html,
    )


@receiver(user_logged_out)
def disconnect_signed_out(sender: Any, user: User | None, **_: Any) -> None:
    if user is not None:
        disconnect(user.pk)


@receiver([password_changed, password_set, password_reset])
def disconnect_former_password(sender: Any, user: User, **_: Any) -> None:
    disconnect(user.pk)


@receiver(post_delete, sender=UserSession)
def disconnect_ended_session(sender: Any, instance: UserSession, **_: Any) -> None:
    disconnect(instance.user_id)


@receiver(post_save, sender=User)
def disconnect_changed_user(sender: Any, created: bool, update_fields: Any, instance: User, **_: Any) -> None:
    may_have_lost_rights = update_fields is None or FIELDS_WITH_RIGHTS & set(update_fields)
    if may_have_lost_rights and not created:
        disconnect(instance.pk)


@receiver(post_delete, sender=ApiToken)
def disconnect_revoked_token(sender: Any, instance: ApiToken, **_: Any) -> None:
    disconnect(instance.user_id)


@receiver(post_delete, sender=User)
def disconnect_deleted_user(sender: Any, instance: User, **_: Any) -> None:
    disconnect(instance.pk)


def disconnect(user_id: Any) -> None:
    """Close every connection of the user after the commit; valid sessions reconnect by themselves."""
    transaction.on_commit(partial(close_user, user_id))
