"""Imports the service once, before it is forked. No imported state may depend on one process or one data folder.

A fork reads all settings again. Those that were read during the import must be unchanged.
"""

from __future__ import annotations

import importlib
import os
import sys

import django
from django.conf import settings
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.utils.functional import empty

IMPORTED = (
    "celery.backends.base",
    "channels.auth",
    "chatapp.accounts.actions",
    "chatapp.accounts.socket_auth",
    "chatapp.operations.serving.lifecycle",
    "chatapp.operations.storage.private_files",
    "chatapp.operations.database.schema_version",
    "chatapp.operations.serving.embedded",
    "chatapp.operations.serving.file_streams",
    "chatapp.operations.serving.listener",
    "chatapp.operations.tasks",
    "chatapp.realtime.consumer",
    "chatapp.runs.loops",
    "chatapp.urls",
    "django.contrib.auth.views",
    "django.db.migrations.executor",
)
"""What a web process, a worker or a command needs, except the application and the server around it, because importing
their modules creates them."""
SETTINGS = "chatapp.settings"
RENEWED = {"DATABASES", "LOGGING"}
"""Settings that may change, because a fork applies them again: it resets its connections and configures logging."""

variables: dict[str, str] = {}
"""The environment variables that modules set during the import."""


def is_here() -> bool:
    return SETTINGS in sys.modules


def import_it() -> None:
    given = dict(os.environ)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    django.setup()
    importlib.import_module("chatapp.operations.discovery").import_every("tasks")
    for name in (*IMPORTED, *(dotted.rpartition(".")[0] for dotted in settings.MIDDLEWARE)):
        importlib.import_module(name)
    MigrationLoader(None)
    variables.update({name: value for name, value in os.environ.items() if name not in given})


def settings_read() -> dict[str, object]:
    """Return the settings read so far. Django caches each one at its first use."""
    return {name: value for name, value in vars(settings).items() if name != "_wrapped"}


def read_settings_anew() -> list[str]:
    """Load the settings from the current environment. Return the names of those that were read during the import and
    have changed."""
    before = settings_read()
    environment = importlib.import_module("chatapp.operations.configuration.environment")
    for known in (environment.shown, environment._from_file):
        known.clear()
    del sys.modules[SETTINGS]
    settings._wrapped = empty
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    vars(connections).pop("settings", None)
    connections.__init__()  # type: ignore[misc]
    return [name for name in before.keys() - RENEWED if getattr(settings, name) != before[name]]
