"""The addresses of the admin, imported by the first request for one: a chat needs none of it."""

from __future__ import annotations

from importlib import import_module

from django.contrib import admin

from chatapp.operations.discovery import import_every

admin.autodiscover()
# Django looks for an `admin` in the root of an app alone; each of our packages has one.
import_every("admin")
# Not by its package, which the site is in: there must be a site before a page is registered.
import_module("chatapp.operations.admin.audit")

urlpatterns = admin.site.get_urls()
