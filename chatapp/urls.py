"""Every address of the service: the routers of the API, in the order of its description, and the pages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from chatapp.accounts import api as accounts
from chatapp.agent_presets import api as agent_presets
from chatapp.compaction import api as compaction
from chatapp.conversations.api import conversations, exports, imports, messages
from chatapp.files import api as files
from chatapp.forgetting import api as forgetting
from chatapp.long_term.api import days, entries, profile, settings, shared, stats
from chatapp.operations import health, views
from chatapp.operations.http.api import api_urlpatterns, build_api
from chatapp.providers import api as providers
from chatapp.realtime.api import events
from chatapp.recall import api as recall
from chatapp.runs.api import injecting, runs

ROUTERS = (
    accounts.router,
    providers.router,
    agent_presets.router,
    imports.router,  # before conversations: /conversations/import is not an id
    conversations.router,
    messages.router,
    injecting.router,
    events.router,
    runs.router,
    compaction.router,
    exports.router,
    files.router,
    agent_presets.tools_router,
    files.files_router,
    forgetting.forgetting_router,
    days.memory_router,
    entries.entries_router,
    settings.settings_router,
    shared.shared_router,
    stats.stats_router,
    profile.profile_router,
    recall.search_router,
)

api = build_api(ROUTERS)

urlpatterns = [
    *api_urlpatterns(api),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("", views.chat, name="chat"),
    path("c/<uuid:conversation_id>", views.chat, name="conversation"),
    path("memory", views.memory, name="memory"),
    path("setup/<str:token>", views.setup, name="setup"),
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("favicon.ico", views.favicon),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
