"""Encrypts provider keys and other secrets with a key derived from SECRET_KEY."""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from chatapp.operations.errors import ServiceError

# Part of the key derivation: changing it makes every stored key unreadable.
PURPOSE = b"palimpsest provider keys"


class SecretUnreadable(ServiceError):
    """The stored secret was encrypted with another SECRET_KEY, or was damaged."""

    code = "secret_unreadable"
    status = 500

    def __init__(self) -> None:
        super().__init__(
            "The stored key can no longer be decrypted, because SECRET_KEY has changed: enter the key again, "
            "or start with the former SECRET_KEY (data/secret_key, if you never set one)."
        )


def encrypt(secret: str) -> str:
    """Return the encrypted secret; empty for an empty one."""
    return _box_for(*_secret_keys()).encrypt(secret.encode()).decode() if secret else ""


def decrypt(stored: str) -> str:
    """Return the secret; empty for an empty one. Raise SecretUnreadable."""
    if not stored:
        return ""
    try:
        return _decrypt(stored, *_secret_keys())
    except InvalidToken:
        raise SecretUnreadable from None


@lru_cache(maxsize=64)
def _decrypt(stored: str, *secret_keys: str | bytes) -> str:
    """Decrypt, with a cache because each answer needs the key of its provider."""
    return _box_for(*secret_keys).decrypt(stored.encode()).decode()


def _secret_keys() -> tuple[str | bytes, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=8)
def _box_for(*secret_keys: str) -> MultiFernet:
    """Return a cipher that encrypts with the first key and decrypts with any, so that SECRET_KEY can be rotated."""
    return MultiFernet([Fernet(_derive(secret_key)) for secret_key in secret_keys])


def _derive(secret_key: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE)
    return base64.urlsafe_b64encode(derivation.derive(secret_key.encode()))
