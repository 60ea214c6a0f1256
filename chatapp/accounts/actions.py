"""Writes users, their API tokens and the one-time set-up link."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.models import ApiToken, SetupLink, User
from chatapp.accounts.selectors import (
    SCOPES,
    accessible_token,
    has_admin,
    hash_token,
    is_only_admin,
    owners_of,
)
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.database import audit
from chatapp.operations.database.access import lock_rows
from chatapp.operations.database.text import normalize_text
from chatapp.operations.database.work_budget import delete_all
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.operations.models import AuditEvent, ForgettingCount
from chatapp.runs.models import Run

TOKEN_PREFIX = "pal_"
SETUP_SALT = "chatapp.accounts.setup_link"
PREFIX_CHARS = 10
USE_IS_RECORDED_EVERY = timedelta(minutes=1)
EXPIRED_IS_SHOWN_FOR = timedelta(days=30)


def create_user(*, email: str, password: str, name: str = "", is_admin: bool = False) -> User:
    """Store a user and return it. Raise InvalidInput for a bad address or password, Conflict for a taken address."""
    user = _new_user(email, password, name, is_admin)
    with transaction.atomic():
        _save_new(user)
    return user


def set_groups_by_name(*, user: User, names: Sequence[str]) -> None:
    """Make the user a member of exactly the named groups. Ignore names of groups that do not exist."""
    with transaction.atomic():
        groups = Group.objects.filter(name__in=names).order_by("name")
        before = set(user.groups.values_list("pk", flat=True))
        if before != {group.pk for group in groups}:
            user.groups.set(groups)
            names = [group.name for group in groups]
            audit.record(AuditEvent.Kind.GROUPS_FOLLOWED, user_id=user.pk, groups=names)


def delete_unconfirmed_claims(*, email: str) -> None:
    """Delete the rows in which other users entered this address of an account and did not confirm it: they could not
    make it their primary address."""
    with transaction.atomic():
        claims = EmailAddress.objects.filter(email=email.lower(), verified=False)
        for claim in claims.exclude(user__email=email.lower()):
            audit.record(AuditEvent.Kind.ADDRESS_CHANGED, user_id=claim.user_id)
            claim.delete()


def mark_address_verified(*, user: User) -> None:
    """Mark the address as verified and primary, because an operator entered it. The user has no other primary one.

    Without this row allauth creates an unverified one when somebody requests a password reset.
    """
    values = {"verified": True, "primary": True}
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults=values)


def ensure_setup_link() -> str | None:
    """Store the token of `/setup/<token>` as a hash and return the token; None once there is an admin.

    All starting processes derive the same token, so that the operator sees one link. A used link never becomes valid
    again, because there is a newer account by then.
    """
    with transaction.atomic():
        if has_admin():
            SetupLink.objects.all().delete()
            return None
        newest = User.objects.order_by("-pk").values_list("pk", flat=True).first()
        token = salted_hmac(SETUP_SALT, str(newest), algorithm="sha256").hexdigest()
        SetupLink.objects.update_or_create(pk=1, defaults={"token_hash": hash_token(token)})
    return token


def claim_setup_link(*, token: str, email: str, password: str, name: str = "") -> User:
    """Store the first admin and return it. Raise NotFound for a wrong or used link, and what `create_user` raises."""
    user = _new_user(email, password, name, is_admin=True)
    with transaction.atomic():
        link = SetupLink.objects.select_for_update().first()
        # Because of the lock, only the first of two visitors with the same link becomes the admin.
        if link is None or not compare_digest(link.token_hash, hash_token(token)):
            raise NotFound("This set-up link was used or replaced. Start the service again for a new one.")
        link.delete()
        if has_admin():
            raise Conflict("There is an admin already.")
        _save_new(user)
    return user


def check_replaceable(user: User) -> None:
    """Raise Conflict for the only admin, because nobody could make another one."""
    if is_only_admin(user):
        raise Conflict("This is the only admin: make somebody else one first.", code="only_admin")


def delete_user(*, user: User) -> None:
    """Delete the account with its tokens, sessions and admin log entries. The caller has deleted its content before.

    Raise Conflict for the only admin.
    """
    with transaction.atomic():
        # Lock all admins: two who delete their accounts concurrently would each see the other as the remaining one.
        # Lock in key order to avoid a deadlock. `no_key` does not block a chat of theirs that inserts rows with a
        # foreign key to them while it holds rows that are locked below.
        list(User.objects.select_for_update(no_key=True).filter(is_superuser=True).order_by("pk"))
        check_replaceable(user)
        _end_sessions(user)
        # No foreign key of these rows references the account, so deleting the user does not delete them.
        _admin_log_of(user).delete()
        ForgettingCount.objects.filter(pk=user.pk).delete()
        Invitation.objects.filter(email=user.email).delete()
        audit.record(AuditEvent.Kind.ACCOUNT_DELETED, user_id=user.pk)
        _hold_what_is_left(user)
        user.delete()


def _end_sessions(user: User) -> None:
    sessions = UserSession.objects.filter(user=user)
    Session.objects.filter(session_key__in=list(sessions.values_list("session_key", flat=True))).delete()
    sessions.delete()


def delete_ended_sessions(*, now: datetime) -> None:
    """Delete, in batches, expired sessions, and the records of address and browser without a session."""
    is_there = Exists(Session.objects.filter(pk=OuterRef("session_key")))
    for rows in (Session.objects.filter(expire_date__lt=now), UserSession.objects.filter(~is_there)):
        delete_all(rows)


def remove_second_factors(*, user: User, actor_id: UUID | None = None) -> int:
    """Delete the authenticator app, recovery codes, security keys and passkeys of a user who lost them, and return
    their number. The user's sessions end, and the password alone signs in again."""
    with transaction.atomic():
        rows = list(Authenticator.objects.select_for_update().filter(user=user).order_by("pk"))
        if rows:
            Authenticator.objects.filter(pk__in=[row.pk for row in rows]).delete()
            # One may be on a stolen phone.
            _end_sessions(user)
            audit.record(
                AuditEvent.Kind.SECOND_FACTOR_CHANGED,
                user_id=user.pk,
                actor_id=actor_id,
                done="removed by an operator",
            )
    return len(rows)


def _hold_what_is_left(user: User) -> None:
    """Lock conversations that were begun after the others were deleted, and their running answers, before Django
    collects related rows, so that nothing is added to them meanwhile."""
    conversations = Conversation.objects.filter(user=user)
    lock_rows(conversations)
    # Checkpoints skip locked runs, so that none stores a partial answer that references a deleted message.
    lock_rows(Run.objects.filter(conversation__in=conversations, status__in=Run.ACTIVE))


def _admin_log_of(user: User) -> QuerySet[LogEntry]:
    """Return the admin panel's log entries of the account, and of rows whose label is or begins with one of its
    addresses: addresses, invitations and, as "erin@example.com: a day", budgets."""
    entries = Q(content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk))
    for email in {user.email, *EmailAddress.objects.filter(user=user).values_list("email", flat=True)}:
        entries |= Q(object_repr=email)
        for colon in (":", "："):  # as panels in English and Chinese write it
            entries |= Q(object_repr__startswith=f"{email}{colon}")
    return LogEntry.objects.filter(entries)


def create_token(
    *, user: User, name: str, scopes: Sequence[str], expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Store a token and return (the row, the secret). The secret itself is not stored. Raise InvalidInput."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidInput(
            f"Scopes are one or more of {', '.join(SCOPES)}.",
            details=[{"field": "scopes", "unknown": unknown}],
        )
    raw = TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user,
            name=normalize_text(name.strip(), 100, "The name") or "unnamed",
            prefix=raw[:PREFIX_CHARS],
            token_hash=hash_token(raw),
            # Remove duplicates and use a fixed order.
            scopes=[scope for scope in SCOPES if scope in scopes],
            expires_at=expires_at,
        )
        record_created_id(token.pk)
        audit.record(AuditEvent.Kind.TOKEN_CREATED, user_id=user.pk, token=token.prefix, scopes=token.scopes)
    return token, raw


def delete_token(*, user: User, token_id: UUID | str) -> None:
    """Delete a token. Raise NotFound, also for another user's."""
    with transaction.atomic():
        token = accessible_token(user, token_id)
        audit.record(AuditEvent.Kind.TOKEN_REVOKED, user_id=user.pk, token=token.prefix)
        token.delete()


def delete_expired_tokens(*, now: datetime) -> None:
    """Delete the tokens that expired a month ago or earlier."""
    ApiToken.objects.filter(expires_at__lt=now - EXPIRED_IS_SHOWN_FOR).delete()


def update_personal_settings(*, user: User, changes: Mapping[str, Any]) -> User:
    """Store `changes`, by column, and return the user."""
    if "instructions" in changes:
        text = changes["instructions"]
        changes = {**changes, "instructions": normalize_text(text, len(text)).strip()}
    for name, value in changes.items():
        setattr(user, name, value)
    user.save(update_fields=list(changes))
    return user


def record_token_use(*, token: ApiToken) -> None:
    """Store when the token was used, at most once a minute, so that not every read is also a write."""
    now = clock.now()
    due_before = now - USE_IS_RECORDED_EVERY
    if token.last_used_at is not None and token.last_used_at > due_before:
        return
    # Check again in the update, so that only one of several concurrent requests writes.
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=due_before)
    ApiToken.objects.filter(is_due, pk=token.pk).update(last_used_at=now)


def _new_user(email: str, password: str, name: str, is_admin: bool) -> User:
    """Return an unsaved user: hashing a password takes too long for a transaction."""
    # Django's method makes only the domain lower case, but one person must not have two accounts.
    email = User.objects.normalize_email(email.strip()).lower()
    user = User(
        email=email,
        name=normalize_text(name.strip(), 150, "The name"),
        is_staff=is_admin,
        is_superuser=is_admin,
    )
    check_email(email)
    _check("password", validate_password, password, user)
    user.set_password(password)
    return user


def check_email(email: str) -> None:
    """Raise InvalidInput for an invalid address, or one that is too long for its column."""
    _check("email", validate_email, email)
    _check("email", User._meta.get_field("email").run_validators, email)


def _check(field: str, validate: Any, *values: Any) -> None:
    try:
        validate(*values)
    except ValidationError as error:
        details = [{"field": field, "message": message} for message in error.messages]
        raise InvalidInput(" ".join(error.messages), details=details) from None


def _save_new(user: User) -> None:
    taken = Conflict("There is an account with this email address already.", details={"field": "email"})
    # This includes confirmed additional addresses of other accounts.
    if owners_of(user.email):
        raise taken
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            delete_unconfirmed_claims(email=user.email)
            mark_address_verified(user=user)
            audit.record(AuditEvent.Kind.ACCOUNT_CREATED, user_id=user.pk)
    except IntegrityError:
        raise taken from None
