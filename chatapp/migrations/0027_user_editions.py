from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0026_indexed_below")]

    operations = [
        migrations.CreateModel(
            name="UserEdition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("user_id", models.UUIDField(db_index=True)),
                ("token", models.CharField(max_length=32)),
            ],
        ),
    ]
