"""Name the counters of what was forgotten by what they count: a fence is the number of a lease."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0033_fewer_indexes_of_messages")]

    operations = [migrations.RenameModel("Fence", "ForgettingCount")]
