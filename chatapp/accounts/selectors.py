"""Reads users, API tokens and sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from hmac import compare_digest
from uuid import UUID

from django.contrib.sessions.models import Session
from django.utils import timezone

from chatapp.accounts.models import ApiToken, SetupLink, User
from chatapp.operations.access import parse_id
from chatapp.operations.errors import NotFound

SCOPES = ("chat", "read", "memory", "admin")


def hash_token(raw: str) -> str:
    """Return the hash that is stored. SHA-256 is enough for 32 random bytes."""
    return sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


def scopes_of(token: ApiToken) -> frozenset[str]:
    """Return what the token allows, which is never more than its owner may do."""
    return frozenset(token.scopes) - (frozenset() if token.user.is_superuser else {"admin"})


def find_token(raw: str) -> ApiToken | None:
    """Return the token whose owner is active, if there is one."""
    tokens = ApiToken.objects.select_related("user").filter(user__is_active=True)
    return tokens.filter(token_hash=hash_token(raw)).first()


def visible_tokens(user: User) -> Iterable[ApiToken]:
    return ApiToken.objects.filter(user=user).order_by("-created_at", "-pk")


def accessible_token(user: User, token_id: UUID | str) -> ApiToken:
    """Return a token of the user. Raises NotFound."""
    token = ApiToken.objects.filter(user=user, pk=parse_id(token_id)).first()
    if token is None:
        raise NotFound
    return token


def all_users() -> list[User]:
    """Return all users, the oldest first."""
    return list(User.objects.order_by("date_joined", "pk"))


def users_gone(user_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids that belong to no user."""
    return set(user_ids) - set(User.objects.filter(pk__in=user_ids).values_list("pk", flat=True))


def find_user(email: str) -> User | None:
    return User.objects.filter(email__iexact=email.strip()).first()


def time_zone_of(user_id: UUID | str) -> str:
    return User.objects.values_list("time_zone", flat=True).get(pk=parse_id(user_id))


def has_admin() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def is_only_admin(user: User) -> bool:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    return user.is_superuser and not others.exists()


def is_setup_link(token: str) -> bool:
    """Return whether this set-up link is valid. Claiming it checks again under a lock."""
    link = SetupLink.objects.first()
    return link is not None and not has_admin() and compare_digest(link.token_hash, hash_token(token))


def is_still_signed_in(user_id: UUID, session_key: str | None, token_id: UUID | None = None) -> bool:
    """Return whether user, token and session are still valid. Without token and session, only the user counts."""
    if not User.objects.filter(pk=user_id, is_active=True).exists():
        return False
    if token_id is not None:
        return ApiToken.objects.filter(pk=token_id, user_id=user_id).exists()
    if session_key is None:
        return True
    return Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now()).exists()
