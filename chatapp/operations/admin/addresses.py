"""The addresses of the admin, imported by the first request for one: a chat needs none of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from django.contrib import admin

CHATAPP = Path(__file__).resolve().parents[2]

admin.autodiscover()
# Django looks for an `admin` in the root of an app alone; each of our packages has one.
for found in sorted({*CHATAPP.glob("*/admin.py"), *CHATAPP.glob("*/admin/__init__.py")}):
    import_module(f"chatapp.{found.relative_to(CHATAPP).parts[0]}.admin")
# Not by its package, which the site is in: there must be a site before a page is registered.
import_module("chatapp.operations.admin.audit")

urlpatterns = admin.site.get_urls()
