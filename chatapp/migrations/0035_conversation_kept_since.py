"""Keep the day of an import beside the day of its last message, which was set to the day of the import until now."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0034_forgetting_counts")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="kept_since",
            field=models.DateTimeField(
                null=True,
                editable=False,
                help_text="When it was imported: the clean-up counts no earlier day.",
            ),
        ),
    ]
