"""Which address is which door."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from chatapp import views

urlpatterns = [
    path("", include("chatapp.api.urls")),
    path("", views.chat, name="chat"),
    path("c/<uuid:conversation_id>", views.chat, name="conversation"),
    path("memory", views.memory, name="memory"),
    path("setup/<str:token>", views.setup, name="setup"),
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("favicon.ico", views.favicon),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
