"""Keep the title of a shared conversation as it was when it was shared; of links that are there, as it is now."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.db import migrations, models
from django.db.models import OuterRef, Subquery

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


def keep_titles(apps: Any, schema_editor: Any) -> None:
    shared = apps.get_model("chatapp", "SharedConversation")
    now = apps.get_model("chatapp", "Conversation").objects.filter(pk=OuterRef("conversation"))
    shared.objects.update(
        title=Subquery(now.values("title")), title_made_of=Subquery(now.values("title_made_of"))
    )


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0037_temporary_conversations_end")]

    operations = [
        migrations.AddField(
            model_name="sharedconversation",
            name="title",
            field=models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="sharedconversation",
            name="title_made_of",
            field=models.PositiveBigIntegerField(
                help_text="As in the conversation: the last position that it was made of.", null=True
            ),
        ),
        migrations.RunPython(sample_none, migrations.RunPython.noop),
        migrations.RunPython(keep_titles, migrations.RunPython.noop, elidable=True),
    ]
