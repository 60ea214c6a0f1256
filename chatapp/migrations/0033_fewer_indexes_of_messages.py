"""Drop the indexes of a message's conversation and branch, which begin others, too. SQLite would copy the table to alter
a field: only the indexes are dropped."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

FIELDS = ("conversation", "branch")


def drop(apps: Any, schema_editor: Any) -> None:
    message = apps.get_model("chatapp", "Message")
    for name in FIELDS:
        column = message._meta.get_field(name).column
        for index in schema_editor._constraint_names(message, [column], index=True):
            schema_editor.execute(schema_editor._delete_index_sql(message, index))


def make(apps: Any, schema_editor: Any) -> None:
    message = apps.get_model("chatapp", "Message")
    for name in FIELDS:
        schema_editor.execute(
            schema_editor._create_index_sql(message, fields=[message._meta.get_field(name)])
        )


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0032_email_in_one_spelling")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop, make)],
            state_operations=[
                migrations.AlterField(
                    "message",
                    name,
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to=f"chatapp.{name}",
                    ),
                )
                for name in FIELDS
            ],
        )
    ]
