"""The operator's site."""

from __future__ import annotations

from django.contrib.admin import AdminSite


class PalimpsestAdminSite(AdminSite):
    site_header = "Palimpsest"
    site_title = "Palimpsest"
