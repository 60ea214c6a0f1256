from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import chatapp.operations.database.ids

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0023_prompts"),
    ]

    operations = [
        migrations.CreateModel(
            name="AnswerFeedback",
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
                ("rating", models.CharField(choices=[("good", "Good"), ("bad", "Bad")], max_length=4)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not said"),
                            ("wrong", "not correct"),
                            ("incomplete", "something is missing"),
                            ("ignored", "did not do what was asked"),
                            ("long", "too long"),
                            ("unsafe", "harmful or inappropriate"),
                            ("other", "something else"),
                        ],
                        max_length=12,
                    ),
                ),
                ("model_name", models.CharField(blank=True, max_length=200)),
                ("given_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="feedback",
                        to="chatapp.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "rating of an answer",
                "verbose_name_plural": "ratings of answers",
                "constraints": [models.UniqueConstraint(fields=("message", "user"), name="feedback_once")],
            },
        ),
        migrations.RunPython(sample_none, migrations.RunPython.noop),
    ]
