"""Find temporary conversations that were idle for long, whatever the retention of others is."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0036_webhooks_end_with_tokens")]

    operations = [
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                fields=["last_activity_at"],
                condition=models.Q(pinned=False, temporary=True),
                name="conversation_temporary",
            ),
        ),
    ]
