"""The Django app of the service, and the admin that asks for a second factor where one is set."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig

from chatapp import celery as celery  # so that it is the current Celery app wherever Django runs


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Palimpsest"


class PalimpsestAdminConfig(AdminConfig):
    default_site = "chatapp.admin_site.PalimpsestAdminSite"
