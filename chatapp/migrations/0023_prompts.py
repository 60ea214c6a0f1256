from importlib import import_module

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import chatapp.operations.database.ids

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0022_accounts_of_companies"),
    ]

    operations = [
        migrations.CreateModel(
            name="Prompt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="What is typed behind the slash: small letters, digits, - and _.",
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*$", "Use small letters, digits, - and _."
                            )
                        ],
                    ),
                ),
                (
                    "about",
                    models.CharField(blank=True, help_text="One line, shown in the list.", max_length=150),
                ),
                ("text", models.TextField(max_length=32000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="prompt_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)), fields=("name",), name="prompt_of_operators_once"
                    ),
                ],
            },
        ),
        migrations.RunPython(sample_none, migrations.RunPython.noop),
    ]
