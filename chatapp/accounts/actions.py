"""Writes users, their API tokens and the one-time set-up link."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
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

from chatapp.accounts.idempotency_keys import record_made
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
from chatapp.operations import audit, clock
from chatapp.operations.access import lock_rows
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.operations.models import AuditEvent, ForgettingCount
from chatapp.operations.text import normalize_text
from chatapp.operations.work_budget import PIECE, TO_THE_END, delete_some
from chatapp.runs.models import Run

TOKEN_PREFIX = "pal_"
SETUP_SALT = "chatapp.accounts.setup_link"
PREFIX_CHARS = 10
USE_IS_RECORDED_EVERY = timedelta(minutes=1)
EXPIRED_IS_SHOWN_FOR = timedelta(days=30)


def create_user(*, email: str, password: str, name: str = "", is_admin: bool = False) -> User:
    """Store a user and return it. Raise InvalidInput for an address or password, Conflict for a taken address."""
    user = _new_user(email, password, name, is_admin)
    with transaction.atomic():
        _save_new(user)
    return user


def follow_groups(*, user: User, names: Sequence[str]) -> None:
    """Make the user a member of those of the named groups that exist here, and of no others."""
    with transaction.atomic():
        groups = Group.objects.filter(name__in=names).order_by("name")
        before = set(user.groups.values_list("pk", flat=True))
        if before != {group.pk for group in groups}:
            user.groups.set(groups)
            names = [group.name for group in groups]
            audit.record(AuditEvent.Kind.GROUPS_FOLLOWED, user_id=user.pk, groups=names)


def release_address(*, email: str) -> None:
    """Take the address of an account from those who entered it as another one of theirs and did not confirm it: making
    it their first one would fail."""
    with transaction.atomic():
        claims = EmailAddress.objects.filter(email=email.lower(), verified=False)
        for claim in claims.exclude(user__email=email.lower()):
            audit.record(AuditEvent.Kind.ADDRESS_CHANGED, user_id=claim.user_id)
            claim.delete()


def prove_address(*, user: User) -> None:
    """Store that the address is the user's, because an operator entered it. No other one may be their first.

    Without this row allauth makes one that says the opposite, as soon as anybody asks to reset the password.
    """
    values = {"verified": True, "primary": True}
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults=values)


def ensure_setup_link() -> str | None:
    """Store the token of `/setup/<token>` and return it; None once there is an admin.

    All processes that start make the same one: an operator of several sees one link. It never comes back after its use,
    for then there is a newer account.
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
    """Store the first admin and return it. Raise NotFound for a wrong or used link; else like `create_user`."""
    user = _new_user(email, password, name, is_admin=True)
    with transaction.atomic():
        link = SetupLink.objects.select_for_update().first()
        # Read under a lock: of two visitors with the same link only the first becomes the admin.
        if link is None or not compare_digest(link.token_hash, hash_token(token)):
            raise NotFound("This set-up link was used or replaced. Start the service again for a new one.")
        link.delete()
        if has_admin():
            raise Conflict("There is an admin already.")
        _save_new(user)
    return user


def check_replaceable(user: User) -> None:
    """Raise Conflict for the only admin: nobody could make another one."""
    if is_only_admin(user):
        raise Conflict("This is the only admin: make somebody else one first.", code="only_admin")


def delete_user(*, user: User) -> None:
    """Delete the account with its tokens, sessions and the admin log of it. What it contained was deleted before.

    Raise Conflict for the only admin.
    """
    with transaction.atomic():
        # Two admins who delete their accounts at once would each see the other as the one who is left.
        # In the order of keys, so that they do not wait for each other.
        # `no_key`: a chat of theirs may store rows that name them, and holds what is locked below.
        list(User.objects.select_for_update(no_key=True).filter(is_superuser=True).order_by("pk"))
        check_replaceable(user)
        _end_sessions(user)
        # These rows name the account by no foreign key, so that nothing else deletes them with it.
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
    """Delete, in pieces, sessions that have expired, and what names the address and browser of a session that is
    gone."""
    is_there = Exists(Session.objects.filter(pk=OuterRef("session_key")))
    for rows in (Session.objects.filter(expire_date__lt=now), UserSession.objects.filter(~is_there)):
        TO_THE_END.work(partial(_delete_piece, rows))


def _delete_piece(rows: QuerySet[Any]) -> bool:
    return delete_some(rows, PIECE.start())


def remove_second_factors(*, user: User, actor_id: UUID | None = None) -> int:
    """Delete the authenticator app, recovery codes, security keys and passkeys of somebody who lost them; the password
    alone signs in again. Their sessions end. Return how many there were."""
    with transaction.atomic():
        rows = list(Authenticator.objects.select_for_update().filter(user=user).order_by("pk"))
        if rows:
            Authenticator.objects.filter(pk__in=[row.pk for row in rows]).delete()
            # Of a phone that was stolen, too.
            _end_sessions(user)
            audit.record(
                AuditEvent.Kind.SECOND_FACTOR_CHANGED,
                user_id=user.pk,
                actor_id=actor_id,
                done="removed by an operator",
            )
    return len(rows)


def _hold_what_is_left(user: User) -> None:
    """Lock conversations that were begun after all others were deleted, and their answers, before Django looks for
    them: nothing is added to them then."""
    conversations = Conversation.objects.filter(user=user)
    lock_rows(conversations)
    # A checkpoint passes them over, and leaves no piece of an answer behind that names a deleted message.
    lock_rows(Run.objects.filter(conversation__in=conversations, status__in=Run.ACTIVE))


def _admin_log_of(user: User) -> QuerySet[LogEntry]:
    """Return what the admin panel keeps of the account, and of rows that are called by an address of it: addresses,
    invitations and, as "erin@example.com: a day", budgets."""
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
            # Each once, and in our order, however the caller wrote them.
            scopes=[scope for scope in SCOPES if scope in scopes],
            expires_at=expires_at,
        )
        record_made(token.pk)
        audit.record(AuditEvent.Kind.TOKEN_CREATED, user_id=user.pk, token=token.prefix, scopes=token.scopes)
    return token, raw


def delete_token(*, user: User, token_id: UUID | str) -> None:
    """Delete a token. Raise NotFound, also for another user's."""
    with transaction.atomic():
        token = accessible_token(user, token_id)
        audit.record(AuditEvent.Kind.TOKEN_REVOKED, user_id=user.pk, token=token.prefix)
        token.delete()


def delete_expired_tokens(*, now: datetime) -> int:
    """Delete the tokens that expired a month ago or earlier, and return their number."""
    return ApiToken.objects.filter(expires_at__lt=now - EXPIRED_IS_SHOWN_FOR).delete()[0]


def update_personal_settings(*, user: User, changes: Mapping[str, Any]) -> User:
    """Store what the user chose, `changes` by column, and return the user."""
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
    # Asked again in the update: of requests that come together, only one writes.
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=due_before)
    ApiToken.objects.filter(is_due, pk=token.pk).update(last_used_at=now)


def _new_user(email: str, password: str, name: str, is_admin: bool) -> User:
    """Return a user that is not saved yet: hashing a password takes too long for a transaction."""
    # Django's makes only the domain lower case, and one person must not have two accounts.
    email = User.objects.normalize_email(email.strip()).lower()
    user = User(
        email=email,
        name=normalize_text(name.strip(), 150, "The name"),
        is_staff=is_admin,
        is_superuser=is_admin,
    )
    _check("email", validate_email, email)
    # The pattern alone lets an address pass that is too long for its column.
    _check("email", User._meta.get_field("email").run_validators, email)
    _check("password", validate_password, password, user)
    user.set_password(password)
    return user


def _check(field: str, validate: Any, *values: Any) -> None:
    try:
        validate(*values)
    except ValidationError as error:
        details = [{"field": field, "message": message} for message in error.messages]
        raise InvalidInput(" ".join(error.messages), details=details) from None


def _save_new(user: User) -> None:
    taken = Conflict("There is an account with this email address already.", details={"field": "email"})
    # Also one that was confirmed as another address of an account.
    if owners_of(user.email):
        raise taken
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            release_address(email=user.email)
            prove_address(user=user)
            audit.record(AuditEvent.Kind.ACCOUNT_CREATED, user_id=user.pk)
    except IntegrityError:
        raise taken from None
