"""The settings that operators can change without a restart. Code must read them here. Validation is as at start-up.

The environment overrides the value stored in the admin panel, which overrides the default.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction

from chatapp.operations import clock
from chatapp.operations.caching.editions import cached
from chatapp.operations.configuration.environment import HIDDEN, read_as, source_of, text
from chatapp.operations.configuration.mail_settings import Mail
from chatapp.operations.database.audit import record_change
from chatapp.operations.encryption import SecretUnreadable, decrypt, encrypt
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.models import StoredSetting

log = logging.getLogger(__name__)

MAIL = "EMAIL_URL"

_latest: dict[Literal["stored"], dict[str, Any]] = {"stored": {}}
"""The stored values, as this process last read them."""


def current(name: str) -> Any:
    """Return the effective value.

    On an event loop, which cannot query the database, use the stored values that this process last read.
    """
    return _stored().get(name, getattr(settings, name))


def has_mail() -> bool:
    stored = _stored().get(MAIL)
    return bool(stored.backend) if stored else settings.HAS_MAIL


def mail_sender() -> str:
    stored: Mail | None = _stored().get(MAIL)
    return stored.sender if stored else settings.DEFAULT_FROM_EMAIL


def mail_connection() -> BaseEmailBackend:
    """Return a connection for the current mail settings. Django itself reads its settings only at start-up."""
    stored = _stored().get(MAIL)
    if not stored:
        return get_connection()
    return get_connection(
        stored.backend,
        host=stored.host,
        port=stored.port,
        username=stored.user,
        password=stored.password,
        use_ssl=stored.use_ssl,
        use_tls=stored.use_starttls,
    )


def _stored() -> dict[str, Any]:
    with contextlib.suppress(SynchronousOnlyOperation):
        _latest["stored"] = cached("settings", _load)
    return _latest["stored"]


def _load() -> dict[str, Any]:
    found = {}
    for name, encrypted in StoredSetting.objects.values_list("name", "value_encrypted"):
        # The environment overrides a value that was stored before the variable was set.
        if name not in settings.CHANGEABLE or source_of(name):
            continue
        try:
            found[name] = read_as(name, decrypt(encrypted), settings.CHANGEABLE[name])
        except (ValueError, SecretUnreadable) as error:
            log.warning("The stored value of %s is not used: %s", name, error)
    return found


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as shown to operators. `raw` is in the format of the environment, without a password."""

    name: str
    raw: str
    source: str
    is_fixed: bool


def shown_setting(name: str) -> ShownSetting:
    """Return the effective value of a changeable setting, and its source."""
    source = source_of(name)
    if source:
        return ShownSetting(name, _shown(name, text(name)), source, is_fixed=True)
    row = StoredSetting.objects.filter(name=name).first()
    if row is None:
        return ShownSetting(name, _shown(name, _written(getattr(settings, name, ""))), "the default", False)
    try:
        raw = decrypt(row.value_encrypted)
    except SecretUnreadable:
        raw = ""
    return ShownSetting(
        name, _shown(name, raw), f"changed here on {row.changed_at:%Y-%m-%d %H:%M} UTC", False
    )


def _shown(name: str, raw: str) -> str:
    if name != MAIL or not raw:
        return raw
    try:
        mail: Mail = read_as(name, raw, settings.CHANGEABLE[name])
    except ValueError:
        return HIDDEN
    return f"{mail.host or 'the console'}, from {mail.sender}"


def _written(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def check_setting(name: str, raw: str) -> None:
    """Raise InvalidInput for a value that would be refused at start-up."""
    try:
        read_as(name, raw, settings.CHANGEABLE[name])
    except ValueError as error:
        raise InvalidInput(str(error), details=[{"field": name, "message": str(error)}]) from None


def change_setting(*, name: str, raw: str, actor_id: UUID | None) -> None:
    """Store a value in the format of the environment. An empty value restores the default.

    Raise Conflict if the environment sets the value, and InvalidInput if it would be refused at start-up.
    """
    if source_of(name):
        raise Conflict(f"{name} is set by {source_of(name)}.")
    check_setting(name, raw)
    with transaction.atomic():
        if raw.strip():
            # Encrypt all values, because EMAIL_URL contains a password.
            values = {"value_encrypted": encrypt(raw.strip()), "changed_at": clock.now()}
            row, is_new = StoredSetting.objects.update_or_create(name=name, defaults=values)
            record_change(
                row, "added" if is_new else "changed", fields=[name], actor_id=actor_id, to=_shown(name, raw)
            )
            return
        for row in StoredSetting.objects.filter(name=name):
            record_change(row, "deleted", fields=[name], actor_id=actor_id)
            row.delete()
