"""Encrypt the secrets of authenticator apps and recovery codes that lie in plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import migrations

from chatapp.operations.encryption import decrypt, encrypt

SECRETS = ("secret", "seed")
"""The names that allauth gives them: of an app, and of what recovery codes are made of."""


def change_all(apps: Any, change: Callable[[str], str]) -> None:
    rows = apps.get_model("mfa", "Authenticator").objects.filter(type__in=["totp", "recovery_codes"])
    for row in rows.iterator():
        row.data |= {name: change(row.data[name]) for name in SECRETS if name in row.data}
        if "migrated_codes" in row.data:
            row.data["migrated_codes"] = [change(code) for code in row.data["migrated_codes"]]
        row.save(update_fields=["data"])


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0038_title_of_shares"), ("mfa", "0003_authenticator_type_uniq")]

    operations = [
        migrations.RunPython(
            lambda apps, _: change_all(apps, encrypt), lambda apps, _: change_all(apps, decrypt)
        )
    ]
