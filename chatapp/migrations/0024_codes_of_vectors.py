import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def embed_anew(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The vectors were in another shape: the worker makes them again."""
    apps.get_model("chatapp", "SearchOwner").objects.update(vector_model="", embedded_ordinal=0)


def owner() -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name="+",
        to="chatapp.searchowner",
    )


def primary_key() -> models.BigAutoField:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0023_named_claims"),
    ]

    operations = [
        migrations.RunPython(embed_anew, embed_anew),
        migrations.DeleteModel(name="SearchVectors"),
        migrations.CreateModel(
            name="SearchVectors",
            fields=[
                ("id", primary_key()),
                ("ordinal", models.PositiveIntegerField()),
                ("vectors", models.BinaryField()),
                ("owner", owner()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "ordinal"), name="search_vectors_of_document_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchCodes",
            fields=[
                ("id", primary_key()),
                ("first_ordinal", models.PositiveIntegerField()),
                ("last_ordinal", models.PositiveIntegerField()),
                ("ordinals", models.BinaryField()),
                ("codes", models.BinaryField()),
                ("owner", owner()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "first_ordinal"), name="search_codes_once")
                ],
            },
        ),
    ]
