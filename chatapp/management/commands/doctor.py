"""`manage.py doctor`: checks everything that the service needs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from chatapp.operations.monitoring.doctor import examine


class Command(BaseCommand):
    help = "Checks every part that the service needs and says how to fix problems. Exits with code 1 if there are any."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for finding in examine():
            well = self.style.SUCCESS("ok    ") if finding.is_used else "unused"
            mark = well if finding.is_well else self.style.ERROR("FAILED")
            self.stdout.write(f"{mark} {finding.part}: {finding.what}")
            if not finding.is_well:
                broken += 1
                self.stdout.write(f"       {finding.remedy}")
        if broken:
            raise SystemExit(1)
