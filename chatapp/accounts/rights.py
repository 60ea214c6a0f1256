"""Records sign-ins, sign-outs and changes of rights in the audit log, and closes connections that lost their rights."""

from __future__ import annotations

from functools import partial
from typing import Any

from allauth.account.signals import (
    email_added,
    email_changed,
    email_removed,
    password_changed,
    password_reset,
    password_set,
    user_signed_up,
)
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from allauth.socialaccount.signals import social_account_added, social_account_removed
from allauth.usersessions.models import UserSession
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest

from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.selectors import find_user
from chatapp.operations.database import audit
from chatapp.operations.models import AuditEvent
from chatapp.realtime.hub import close_user, holder_of

# A sign-in saves only `last_login` and must not close the connections of all other devices.
FIELDS_WITH_RIGHTS = frozenset({"is_active", "is_staff", "is_superuser", "password"})


@receiver(user_logged_in)
def audit_sign_in(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.SIGNED_IN, user_id=user.pk)


@receiver(user_login_failed)
def audit_wrong_password(sender: Any, credentials: dict[str, Any], **_: Any) -> None:
    user = find_user(str(credentials.get("email") or ""))
    audit.record(AuditEvent.Kind.SIGN_IN_FAILED, user_id=user.pk if user else None, entered="password")


@receiver(authentication_failed)
def audit_wrong_code(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.SIGN_IN_FAILED, user_id=user.pk, entered="second factor")


@receiver(user_signed_up)
def audit_sign_up(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.ACCOUNT_CREATED, user_id=user.pk)


@receiver([email_added, email_changed, email_removed])
def audit_address(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.ADDRESS_CHANGED, user_id=user.pk)


@receiver([social_account_added, social_account_removed])
def audit_single_sign_on(
    sender: Any, request: HttpRequest, sociallogin: Any = None, socialaccount: Any = None, **_: Any
) -> None:
    user_id = (sociallogin or socialaccount).user.pk
    audit.record(
        AuditEvent.Kind.SINGLE_SIGN_ON_CHANGED, user_id=user_id, done="linked" if sociallogin else "removed"
    )


@receiver([authenticator_added, authenticator_removed, authenticator_reset])
def audit_second_factor(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.SECOND_FACTOR_CHANGED, user_id=user.pk)


# --- closing connections


@receiver(user_logged_out)
def disconnect_signed_out(sender: Any, request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None:
        audit.record(AuditEvent.Kind.SIGNED_OUT, user_id=user.pk)
        if session_key := request.session.session_key:
            disconnect(user.pk, holder_of(session_key))


@receiver([password_changed, password_set, password_reset])
def disconnect_former_password(sender: Any, user: User, **_: Any) -> None:
    audit.record(AuditEvent.Kind.PASSWORD_CHANGED, user_id=user.pk)
    disconnect(user.pk)


@receiver(post_delete, sender=UserSession)
def disconnect_ended_session(sender: Any, instance: UserSession, **_: Any) -> None:
    disconnect(instance.user_id, holder_of(instance.session_key))


@receiver(post_save, sender=User)
def disconnect_changed_user(sender: Any, created: bool, update_fields: Any, instance: User, **_: Any) -> None:
    # Without `update_fields` all columns were saved, and any may have changed.
    may_have_lost_rights = update_fields is None or FIELDS_WITH_RIGHTS & set(update_fields)
    if may_have_lost_rights and not created:
        disconnect(instance.pk)


@receiver(post_delete, sender=ApiToken)
def disconnect_revoked_token(sender: Any, instance: ApiToken, **_: Any) -> None:
    disconnect(instance.user_id, holder_of(None, instance.pk))


@receiver(post_delete, sender=User)
def disconnect_deleted_user(sender: Any, instance: User, **_: Any) -> None:
    disconnect(instance.pk)


def disconnect(user_id: Any, holder: str = "") -> None:
    """Close the user's connections after the commit: those of the session or token `holder`, or all if it is empty.

    Clients with a valid session reconnect by themselves.
    """
    # Before the commit, a closed client could reconnect with the rights that it still has.
    transaction.on_commit(partial(close_user, user_id, holder))
