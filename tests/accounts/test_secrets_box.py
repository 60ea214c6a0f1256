"""Provider keys at rest."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from chatapp.operations import encryption
from chatapp.operations.encryption import SecretUnreadable, decrypt, encrypt


def test_what_was_encrypted_can_be_decrypted_and_not_be_read() -> None:
    stored = encrypt("sk-very-secret")
    assert "very" not in stored
    assert decrypt(stored) == "sk-very-secret"


def test_no_secret_stays_no_secret() -> None:
    assert (encrypt(""), decrypt("")) == ("", "")


def test_another_secret_key_cannot_decrypt_and_says_how_to_mend(settings: Settings) -> None:
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
def test_a_damaged_secret_is_told_apart(stored: str) -> None:
    with pytest.raises(SecretUnreadable):
        encryption.decrypt(stored)
