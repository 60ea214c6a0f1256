"""Store that the addresses which operators and commands entered are their owners', before allauth stores the opposite."""

from __future__ import annotations

from typing import Any

from django.db import migrations

ROWS = 1_000


def prove_addresses(apps: Any, _: Any) -> None:
    address = apps.get_model("account", "EmailAddress")
    # Who signed up has a row.
    users = apps.get_model("chatapp", "User").objects.filter(emailaddress=None).exclude(email="")
    rows = [
        address(user_id=key, email=email.lower(), verified=True, primary=True)
        for key, email in users.values_list("pk", "email").iterator()
    ]
    # One that somebody else confirmed as another address of theirs stays theirs.
    address.objects.bulk_create(rows, batch_size=ROWS, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0039_encrypt_second_factors"),
        ("account", "0009_emailaddress_unique_primary_email"),
    ]

    operations = [migrations.RunPython(prove_addresses, migrations.RunPython.noop)]
