from importlib import import_module

from django.db import migrations, models

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0027_user_editions")]

    operations = [
        migrations.AddField(
            "user",
            "language",
            models.CharField(
                max_length=16,
                blank=True,
                default="",
                help_text="The language of the page, such as zh-hans; empty: the browser's language.",
            ),
            preserve_default=False,
        ),
        migrations.AddField("user", "theme", models.CharField(max_length=16, default="system")),
        migrations.AddField("user", "text_size", models.CharField(max_length=16, default="normal")),
        migrations.AddField("user", "text_width", models.CharField(max_length=16, default="normal")),
        migrations.AddField("user", "send_key", models.CharField(max_length=16, default="enter")),
        migrations.AddField(
            "user",
            "notifications",
            models.BooleanField(default=True, help_text="Browser notifications, if the browser allows them."),
        ),
        migrations.AddField(
            "user",
            "instructions",
            models.TextField(
                blank=True, default="", help_text="Sent to the model in every chat of this user."
            ),
            preserve_default=False,
        ),
        migrations.RunPython(sample_none, migrations.RunPython.noop),
    ]
