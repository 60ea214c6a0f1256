"""What an agent shares has an index of its own, made of the documents that its users' have."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ENTRY = 2
NO_ORDINAL = -1


def index_scopes(apps, schema_editor):
    entries = apps.get_model("chatapp", "MemoryEntry").objects.filter(scope__isnull=False)
    for scope_id in sorted(set(entries.values_list("scope_id", flat=True))):
        index_scope(apps, scope_id, entries.filter(scope_id=scope_id).values("pk"))


def index_scope(apps, scope_id, entry_ids):
    owners, documents = (apps.get_model("chatapp", name) for name in ("SearchOwner", "SearchDocument"))
    rows = list(documents.objects.filter(kind=ENTRY, source_id__in=entry_ids).order_by("owner", "ordinal"))
    owner = owners.objects.create(
        scope_id=scope_id,
        next_ordinal=len(rows),
        document_count=len(rows),
        total_length=sum(row.length for row in rows),
    )
    source_id = None
    for ordinal, row in enumerate(rows):
        is_next_piece = row.source_id == source_id
        source_id = row.source_id
        row.pk, row.owner, row.conversation_id = None, owner, None
        row.ordinal, row.previous = ordinal, ordinal - 1 if is_next_piece else NO_ORDINAL
    documents.objects.bulk_create(rows, batch_size=500)


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0029_editions_of_indexes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="searchowner",
            name="user",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="searchowner",
            name="scope",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="chatapp.agent",
            ),
        ),
        migrations.AddConstraint(
            model_name="searchowner",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("scope__isnull", False), ("user", None)),
                    models.Q(("scope", None), ("user__isnull", False)),
                    _connector="OR",
                ),
                name="search_owner_is_one",
            ),
        ),
        migrations.RunPython(index_scopes, migrations.RunPython.noop),
    ]
