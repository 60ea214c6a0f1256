"""API tokens: shown once, stored as hashes, invalid if their owner is deactivated."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.actions import create_token, delete_token, record_token_use
from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.selectors import find_token, scopes_of
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput, NotFound


def authenticate_token(raw: str) -> tuple[User, frozenset[str]] | None:
    token = find_token(raw)
    return (token.user, scopes_of(token)) if token else None


def test_a_token_authenticates_its_owner_with_its_scopes(alice: User) -> None:
    _, secret = create_token(user=alice, name="ci", scopes=["read", "chat"])
    assert authenticate_token(secret) == (alice, frozenset({"chat", "read"}))


def test_the_database_does_not_hold_the_secret(alice: User) -> None:
    token, secret = create_token(user=alice, name="ci", scopes=["read"])
    stored = ApiToken.objects.values().get()
    assert secret.startswith("pal_")
    assert secret not in str(stored)
    assert secret.startswith(token.prefix)
    assert len(token.prefix) <= 10


@pytest.mark.parametrize("raw", ["", "pal_wrong", "pal_\ud800", "x" * 100_000])
def test_an_unknown_token_is_rejected(alice: User, raw: str) -> None:
    create_token(user=alice, name="ci", scopes=["read"])
    assert authenticate_token(raw) is None


def test_a_deleted_token_is_rejected(alice: User) -> None:
    token, secret = create_token(user=alice, name="ci", scopes=["read"])
    delete_token(user=alice, token_id=str(token.pk))
    assert authenticate_token(secret) is None


def test_tokens_of_a_deactivated_user_are_rejected(alice: User) -> None:
    _, secret = create_token(user=alice, name="ci", scopes=["read"])
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert authenticate_token(secret) is None


@pytest.mark.parametrize("token_id", ["nonsense", "01930000-0000-7000-8000-000000000000"])
def test_deleting_a_missing_token_raises_not_found(alice: User, token_id: str) -> None:
    with pytest.raises(NotFound):
        delete_token(user=alice, token_id=token_id)


def test_charlie_cannot_delete_alices_token(alice: User, charlie: User) -> None:
    token, secret = create_token(user=alice, name="ci", scopes=["read"])
    with pytest.raises(NotFound):
        delete_token(user=charlie, token_id=token.pk)
    assert authenticate_token(secret)


@pytest.mark.parametrize("scopes", [[], ["everything"], ["read", "root"]])
def test_unknown_scopes_are_refused(alice: User, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        create_token(user=alice, name="ci", scopes=scopes)


def test_the_admin_scope_has_no_effect_for_other_users(alice: User) -> None:
    _, secret = create_token(user=alice, name="ci", scopes=["read", "admin"])
    assert authenticate_token(secret) == (alice, frozenset({"read"}))
    alice.is_superuser = True
    alice.save(update_fields=["is_superuser"])
    assert authenticate_token(secret) == (alice, frozenset({"read", "admin"}))


def test_the_use_of_a_token_is_recorded_at_most_once_a_minute(alice: User) -> None:
    token, _ = create_token(user=alice, name="ci", scopes=["read"])
    record_token_use(token=token)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    record_token_use(token=token)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=clock.now() - timedelta(seconds=61))
    token.refresh_from_db()
    record_token_use(token=token)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first
