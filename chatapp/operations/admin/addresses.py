"""The URLs of the admin, imported on the first request for one, because chats do not need them."""

from __future__ import annotations

from importlib import import_module

from django.contrib import admin

from chatapp.operations.discovery import import_every

admin.autodiscover()
# Django looks for an `admin` module only in the root of an app, but each of our packages has one.
import_every("admin")
# The package must not import this page, because it contains the site, which must exist before pages are registered.
import_module("chatapp.operations.admin.audit")

urlpatterns = admin.site.get_urls()
