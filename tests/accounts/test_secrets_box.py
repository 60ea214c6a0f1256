"""Encryption of stored secrets, e.g. provider keys."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from chatapp.operations import encryption
from chatapp.operations.encryption import SecretUnreadable, decrypt, encrypt


def test_an_encrypted_secret_is_unreadable_and_can_be_decrypted() -> None:
    stored = encrypt("sk-very-secret")
    assert "very" not in stored
    assert decrypt(stored) == "sk-very-secret"


def test_an_empty_secret_stays_empty() -> None:
    assert (encrypt(""), decrypt("")) == ("", "")


def test_decrypting_with_another_secret_key_fails_with_advice(settings: Settings) -> None:
    stored = encrypt("sk-very-secret")
    settings.SECRET_KEY = "another"
    with pytest.raises(SecretUnreadable, match="SECRET_KEY has changed: enter the key again"):
        decrypt(stored)


def test_a_former_secret_key_still_decrypts(settings: Settings) -> None:
    stored = encrypt("sk-very-secret")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the new one"
    assert decrypt(stored) == "sk-very-secret"


@pytest.mark.parametrize("stored", ["nonsense", "gAAAA", "ü"])
def test_decrypting_a_damaged_secret_fails(stored: str) -> None:
    with pytest.raises(SecretUnreadable):
        encryption.decrypt(stored)
