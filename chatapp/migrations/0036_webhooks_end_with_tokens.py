"""Let a webhook end with the token that made it."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0035_conversation_kept_since")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="token",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="webhooks",
                to="chatapp.apitoken",
            ),
        ),
    ]
