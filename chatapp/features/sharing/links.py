"""Makes and reads the tokens of share links. They are signed ids, so that none is stored."""

from __future__ import annotations

from uuid import UUID

from django.core.signing import BadSignature, Signer

from chatapp.operations.errors import NotFound


def token_of(shared_id: UUID) -> str:
    return _signer().sign(shared_id.hex)


def read_token(token: str) -> UUID:
    """Return the id that was signed. Raise NotFound for everything that is no token of ours."""
    try:
        return UUID(_signer().unsign(token))
    except (BadSignature, ValueError):
        raise NotFound("This link is not valid, or it was revoked.") from None


def _signer() -> Signer:
    return Signer(salt="chatapp.features.sharing", sep=".")
