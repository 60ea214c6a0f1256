"""The Django app of the service, and its admin app."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import import_string

from chatapp.operations.caching.editions import install_triggers
from chatapp.operations.database import booleans as booleans
from chatapp.operations.discovery import CHATAPP, import_every
from chatapp.operations.translations import translate_labels
from memory.protocols import Offloader


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Palimpsest"
    path = str(CHATAPP)

    def ready(self) -> None:
        """Import all signal receivers and translate labels. Exit if OFFLOADER is unusable, before it loses a tool
        result."""
        import_module("chatapp.accounts.rights")
        import_every("receivers")
        translate_labels(self.get_models())
        # After each migration, because SQLite drops the triggers of a table that a migration rebuilds.
        post_migrate.connect(install_triggers, sender=self, dispatch_uid="editions")
        try:
            named = import_string(settings.OFFLOADER)
        except ImportError as error:
            raise SystemExit(f"OFFLOADER cannot be imported: {error}") from None
        methods = [name for name in vars(Offloader) if not name.startswith("_")]
        missing = [name for name in methods if not callable(getattr(named, name, None))]
        if missing:
            raise SystemExit(f"OFFLOADER names {settings.OFFLOADER}, which has no {', '.join(missing)}.")


class PalimpsestAdminConfig(SimpleAdminConfig):
    """An admin that registers nothing at start-up. `operations.admin.addresses` does so on the first request."""

    default_site = "chatapp.operations.admin.site.PalimpsestAdminSite"
