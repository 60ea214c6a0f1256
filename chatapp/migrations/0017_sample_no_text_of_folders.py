from importlib import import_module

from django.db import migrations

sample_none = import_module("chatapp.migrations.0009_sample_no_new_text").sample_none


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0016_folders")]

    operations = [migrations.RunPython(sample_none, migrations.RunPython.noop)]
