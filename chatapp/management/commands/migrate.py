"""`manage.py migrate`: Django's command, run by one process at a time."""

from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as DjangoCommand

from chatapp.operations.database.schema_version import one_process_at_a_time


class Command(DjangoCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        with one_process_at_a_time():
            super().handle(*args, **options)
