"""Reads users, API tokens and sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from importlib import import_module
from typing import Any, NamedTuple
from uuid import UUID

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, get_user
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from chatapp.accounts.models import ApiToken, SetupLink, User
from chatapp.operations import clock
from chatapp.operations.database.access import find_row, parse_id
from chatapp.operations.database.statements import columns_of, read_models, table_name

SCOPES = ("chat", "read", "memory", "admin")
SessionStore: Any = import_module(settings.SESSION_ENGINE).SessionStore


def hash_token(raw: str) -> str:
    """Return the stored hash of a token. SHA-256 is enough for 32 random bytes."""
    # A lone surrogate in a client's input makes the token wrong; it must not raise an error.
    return sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


def scopes_of(token: ApiToken) -> frozenset[str]:
    """Return the token's scopes, without `admin` unless its owner is an admin."""
    # Check each time, because the tokens of a former admin still have the scope.
    return frozenset(token.scopes) - (frozenset() if token.user.is_superuser else {"admin"})


def valid_tokens(now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens that have not expired and whose owners are active."""
    return ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), user__is_active=True)


def find_token(raw: str) -> ApiToken | None:
    """Return the valid token with its user, or None."""
    # Raw SQL: every request of a program runs this, and building it with the ORM would take ten times as long.
    sql = (
        f"SELECT {columns_of(ApiToken, 'token')}, {columns_of(User, 'owner')} FROM {table_name(ApiToken)} token"
        f" JOIN {table_name(User)} owner ON owner.id = token.user_id WHERE token.token_hash = %s"
        " AND owner.is_active AND (token.expires_at IS NULL OR token.expires_at > %s)"
    )
    for token, user in read_models([ApiToken, User], sql, hash_token(raw), clock.now()):
        token.user = user
        found: ApiToken = token
        return found
    return None


def user_of_session(session_key: str) -> User | None:
    """Return the user who is signed in with this session; None if it ended or began before a password change."""
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def visible_tokens(user: User) -> Iterable[ApiToken]:
    return ApiToken.objects.filter(user=user).order_by("-created_at", "-pk")


def accessible_token(user: User, token_id: UUID | str) -> ApiToken:
    """Return a token of the user. Raise NotFound."""
    return find_row(ApiToken.objects.filter(user=user), token_id)


def all_users() -> list[User]:
    """Return all users, the oldest first."""
    return list(User.objects.order_by("date_joined", "pk"))


def users_gone(user_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids that belong to no user."""
    return set(user_ids) - set(User.objects.filter(pk__in=user_ids).values_list("pk", flat=True))


def find_user(email: str) -> User | None:
    return User.objects.filter(email=email.strip().lower()).first()


def owners_of(email: str) -> set[UUID]:
    """Return the ids of the accounts with this address, as their own or as a confirmed additional one.

    Unconfirmed ones do not count, because anybody may enter any address.
    """
    confirmed = EmailAddress.objects.filter(email=email.lower(), verified=True).values_list("user", flat=True)
    user = find_user(email)
    return {*confirmed, *([user.pk] if user else ())}


def proven_owner(email: str) -> User | None:
    """Return the account that the address is known to belong to, as its own or as a confirmed additional one.

    None if two accounts have it, or if nothing proves it: anybody may sign up with any address. It is proven if it or
    the account's own address was confirmed, or if an operator entered the latter.
    """
    owners = list(User.objects.filter(pk__in=owners_of(email)))
    if len(owners) != 1:
        return None
    [user] = owners
    addresses = EmailAddress.objects.filter(user=user)
    is_confirmed = addresses.filter(email__in=[email.lower(), user.email], verified=True).exists()
    # allauth adds a row at sign-up; an account that Django's own command created has none.
    return user if is_confirmed or not addresses.exists() else None


def time_zone_of(user_id: UUID | str) -> str:
    return User.objects.values_list("time_zone", flat=True).get(pk=parse_id(user_id))


def _admins() -> QuerySet[User]:
    """Return the admins who can enter the panel, where other admins are appointed."""
    return User.objects.filter(is_superuser=True, is_active=True, is_staff=True)


def has_admin() -> bool:
    return _admins().exists()


def is_only_admin(user: User) -> bool:
    return user.is_superuser and not _admins().exclude(pk=user.pk).exists()


def is_setup_link(token: str) -> bool:
    """Return whether this set-up link is valid. Claiming it checks again with a lock."""
    link = SetupLink.objects.first()
    return link is not None and not has_admin() and compare_digest(link.token_hash, hash_token(token))


class SignIn(NamedTuple):
    """The credentials of a connection: a user's token or session. Without either, only the user is checked."""

    user_id: UUID
    session_key: str | None = None
    token_id: UUID | None = None


def still_signed_in(sign_ins: Collection[SignIn]) -> set[SignIn]:
    """Return the sign-ins for which `is_still_signed_in` is true. Read them together, as there may be thousands."""
    token_ids = {each.token_id for each in sign_ins if each.token_id is not None}
    tokens = valid_tokens(clock.now()).filter(pk__in=token_ids).values_list("pk", "user_id")
    owners = dict(tokens) if token_ids else {}
    users = User.objects.filter(is_active=True).in_bulk({each.user_id for each in sign_ins})
    keys = {each.session_key for each in sign_ins if each.token_id is None and each.session_key is not None}
    sessions = _hashes_of_sessions(keys) if keys else {}
    return {each for each in sign_ins if _is_valid(each, users, owners, sessions)}


def _hashes_of_sessions(keys: Collection[str]) -> dict[str, str]:
    rows = Session.objects.filter(session_key__in=keys, expire_date__gt=clock.now())
    said = {row.session_key: row.get_decoded() for row in rows}
    backends = settings.AUTHENTICATION_BACKENDS
    return {
        key: found.get(HASH_SESSION_KEY, "")
        for key, found in said.items()
        # Like Django's `get_user`, which is bypassed here: a session of a removed backend is invalid.
        if found.get(BACKEND_SESSION_KEY) in backends
    }


def _is_valid(
    sign_in: SignIn, users: Mapping[UUID, User], owners: Mapping[UUID, UUID], sessions: Mapping[str, str]
) -> bool:
    if sign_in.token_id is not None:
        return owners.get(sign_in.token_id) == sign_in.user_id
    user = users.get(sign_in.user_id)
    if user is None or sign_in.session_key is None:
        return user is not None
    said = sessions.get(sign_in.session_key)
    if said is None:
        return False
    # Otherwise the session is signed with a former key, or belongs to another user: check it individually.
    is_known = constant_time_compare(said, user.get_session_auth_hash())
    return is_known or is_still_signed_in(sign_in.user_id, sign_in.session_key)


def is_still_signed_in(user_id: UUID, session_key: str | None, token_id: UUID | None = None) -> bool:
    """Return whether user, token and session are still valid. Without token and session, only the user counts."""
    if token_id is not None:
        return valid_tokens(clock.now()).filter(pk=token_id, user_id=user_id).exists()
    if session_key is not None:
        user = user_of_session(session_key)
        return user is not None and user.pk == user_id
    return User.objects.filter(pk=user_id, is_active=True).exists()
