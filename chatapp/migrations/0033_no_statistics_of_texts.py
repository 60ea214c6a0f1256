"""PostgreSQL's planner keeps samples of each column's values (`pg_statistic`). What people wrote has no place there: no
query chooses by it, and what is forgotten would stay in them."""

from django.db import migrations

TEXT_COLUMNS = """
    SELECT relname, attname, format_type(atttypid, atttypmod)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relname LIKE 'chatapp\\_%' AND relkind = 'r' AND pg_table_is_visible(attrelid)
      AND attnum > 0 AND NOT attisdropped
      AND (atttypid IN ('text'::regtype, 'jsonb'::regtype, 'bytea'::regtype)
           OR atttypid = 'varchar'::regtype AND atttypmod - 4 >= 100)
"""


def keep_none(apps, schema_editor):
    """A column given its own type again loses the samples there are; nothing of it is written anew."""
    if schema_editor.connection.vendor != "postgresql":
        return
    quote = schema_editor.quote_name
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(TEXT_COLUMNS)
        for table, column, of_type in cursor.fetchall():
            schema_editor.execute(
                f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(column)} TYPE {of_type},"
                f" ALTER COLUMN {quote(column)} SET STATISTICS 0"
            )


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0032_horizons_of_purges"),
    ]

    operations = [migrations.RunPython(keep_none, migrations.RunPython.noop)]
