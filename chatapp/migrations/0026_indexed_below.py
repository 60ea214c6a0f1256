"""How far a conversation is in the search index stands in its own row: what is behind is found by an index alone."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F, OuterRef, Q, Subquery

IS_BEHIND = Q(indexed_below__lt=F("next_position"), temporary=False)


def take_over(apps: Any, schema_editor: Any) -> None:
    conversations = apps.get_model("chatapp", "Conversation")._base_manager
    cursor = apps.get_model("chatapp", "SearchCursor").objects.filter(conversation=OuterRef("pk"))
    conversations.filter(search_cursor__position__gte=0).update(
        indexed_below=Subquery(cursor.values(below=F("position") + 1)[:1]),
        last_ordinal=Subquery(cursor.values("last_ordinal")[:1]),
    )


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0025_folder_files")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="indexed_below",
            field=models.PositiveBigIntegerField(
                default=0, editable=False, help_text="Messages below this position are in the search index."
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="last_ordinal",
            field=models.IntegerField(
                default=-1, editable=False, help_text="Of its newest document in the search index; -1: none."
            ),
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=IS_BEHIND,
                fields=["user", "-last_activity_at", "-id"],
                name="conversation_behind",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=IS_BEHIND, fields=["last_activity_at"], name="conversation_overlooked"
            ),
        ),
        migrations.DeleteModel(name="SearchCursor"),
    ]
