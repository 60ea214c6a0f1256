"""Leave the shared index of a deleted agent to a worker. Django does this; the tables stay as they are."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0040_addresses_of_operators")]

    operations = [
        migrations.AlterField(
            model_name="searchowner",
            name="scope",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chatapp.agent",
            ),
        ),
    ]
