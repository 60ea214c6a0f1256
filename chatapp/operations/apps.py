"""The Django app of the service, and its admin, which asks for a second factor where one is set."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig

from chatapp import celery as celery  # so that it is the current Celery app wherever Django runs

CHATAPP = Path(__file__).resolve().parent.parent


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Palimpsest"
    path = str(CHATAPP)


class PalimpsestAdminConfig(AdminConfig):
    default_site = "chatapp.operations.admin.site.PalimpsestAdminSite"

    def ready(self) -> None:
        """Register the admin of each package: Django itself looks for one in the root of an app alone."""
        super().ready()
        for found in sorted({*CHATAPP.glob("*/admin.py"), *CHATAPP.glob("*/admin/__init__.py")}):
            package = found.relative_to(CHATAPP).parts[0]
            import_module(f"chatapp.{package}.admin")
