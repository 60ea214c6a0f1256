"""Which shared memory a conversation and an entry were in is known for good: an agent's deletion takes its row alone."""

from django.db import migrations, models
from django.db.models import F


def note_scopes(apps, schema_editor):
    for name in ("Conversation", "MemoryEntry"):
        rows = apps.get_model("chatapp", name).objects.filter(scope__isnull=False)
        rows.update(shared_in=F("scope_id"))


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0025_summaries_that_wait"),
    ]

    operations = [
        # Its counts are compared within one process's life only.
        migrations.DeleteModel(name="ScopeClock"),
        migrations.CreateModel(
            name="ScopeClock",
            fields=[
                ("shared_in", models.UUIDField(primary_key=True, serialize=False)),
                ("count", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name="conversation",
            name="shared_in",
            field=models.UUIDField(
                db_index=True,
                editable=False,
                help_text="The id of that agent, also when it is deleted: forgetting follows it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="shared_in",
            field=models.UUIDField(
                help_text="The id of that agent, also when it is deleted: forgetting follows it.", null=True
            ),
        ),
        migrations.RunPython(note_scopes, migrations.RunPython.noop),
    ]
