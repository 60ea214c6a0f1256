"""The Django app of the service, and its admin, which asks for a second factor where one is set."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig
from django.utils.module_loading import import_string

from chatapp import celery as celery  # so that it is the current Celery app wherever Django runs
from memory.protocols import Offloader

CHATAPP = Path(__file__).resolve().parent.parent


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Palimpsest"
    path = str(CHATAPP)

    def ready(self) -> None:
        """End a process whose OFFLOADER could keep nothing, before a tool result is lost by it."""
        try:
            named = import_string(settings.OFFLOADER)
        except ImportError as error:
            raise SystemExit(f"OFFLOADER cannot be imported: {error}") from None
        methods = [name for name in vars(Offloader) if not name.startswith("_")]
        missing = [name for name in methods if not callable(getattr(named, name, None))]
        if missing:
            raise SystemExit(f"OFFLOADER names {settings.OFFLOADER}, which has no {', '.join(missing)}.")


class PalimpsestAdminConfig(AdminConfig):
    default_site = "chatapp.operations.admin.site.PalimpsestAdminSite"

    def ready(self) -> None:
        """Register the admin of each package: Django itself looks for one in the root of an app alone."""
        super().ready()
        for found in sorted({*CHATAPP.glob("*/admin.py"), *CHATAPP.glob("*/admin/__init__.py")}):
            package = found.relative_to(CHATAPP).parts[0]
            import_module(f"chatapp.{package}.admin")
