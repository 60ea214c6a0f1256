from importlib import import_module

from django.db import migrations, models

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0017_sample_no_text_of_folders")]

    operations = [
        migrations.CreateModel(
            name="StoredSetting",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("value_encrypted", models.TextField()),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.RunPython(sample_none, migrations.RunPython.noop),
    ]
