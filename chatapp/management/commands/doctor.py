"""`manage.py doctor`: checks everything that the service needs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from chatapp.operations.doctor import examine


class Command(BaseCommand):
    help = "Checks every part the service needs and says how to mend what is broken. Exit code 1 if something is."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for finding in examine():
            well = self.style.SUCCESS("well  ") if finding.is_used else "unused"
            mark = well if finding.is_well else self.style.ERROR("BROKEN")
            self.stdout.write(f"{mark} {finding.part}: {finding.what}")
            if not finding.is_well:
                broken += 1
                self.stdout.write(f"       {finding.remedy}")
        if broken:
            raise SystemExit(1)
