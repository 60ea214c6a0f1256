from importlib import import_module

from django.db import migrations

TEXT_COLUMNS = import_module("chatapp.migrations.0001_initial").TEXT_COLUMNS


def sample_none(apps, schema_editor):
    """Keep no samples of columns that were added since `0001_initial`, which does the same for the older ones."""
    if schema_editor.connection.vendor != "postgresql":
        return
    quote = schema_editor.quote_name
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(TEXT_COLUMNS)
        for table, column, _ in cursor.fetchall():
            schema_editor.execute(f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(column)} SET STATISTICS 0")


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0008_responses_and_webhooks")]

    operations = [migrations.RunPython(sample_none, migrations.RunPython.noop)]
