"""All URLs of the service: the routers of the API, in the order of the OpenAPI description, and the pages."""

from __future__ import annotations

from django.urls import URLResolver, path
from django.urls.resolvers import RoutePattern

from chatapp.accounts import api as accounts
from chatapp.accounts.invitations import api as invitations
from chatapp.agent_presets import api as agent_presets
from chatapp.compaction import api as compaction
from chatapp.conversations.api import conversations, exports, folders, imports, messages
from chatapp.features.bulk import api as bulk
from chatapp.features.diagrams.views import diagram
from chatapp.features.feedback import api as feedback
from chatapp.features.forking import api as forking
from chatapp.features.importing import api as importing
from chatapp.features.mcp_server.views import mcp
from chatapp.features.offline import views as offline_views
from chatapp.features.openai_api.api import openai_urlpatterns
from chatapp.features.openai_api.errors import below_v1_as_openai
from chatapp.features.prompts import api as prompts
from chatapp.features.sharing import api as sharing
from chatapp.features.sharing import views as sharing_views
from chatapp.features.webhooks import api as webhooks
from chatapp.files import api as files
from chatapp.forgetting import api as forgetting
from chatapp.forgetting.trash import api as trash
from chatapp.long_term.api import days, entries, profile, settings, shared, stats
from chatapp.operations import views
from chatapp.operations.http.api import api_urlpatterns, build_api
from chatapp.operations.monitoring import health
from chatapp.providers import api as providers
from chatapp.realtime.api import events
from chatapp.recall import api as recall
from chatapp.runs.api import injecting, runs

ROUTERS = (
    accounts.router,
    invitations.router,
    providers.router,
    agent_presets.router,
    imports.router,  # before conversations: /conversations/import is not an id
    importing.router,
    bulk.router,  # also before conversations
    conversations.router,
    folders.router,
    trash.router,
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
    sharing.router,
    forking.router,
    prompts.router,
    feedback.router,
    webhooks.router,
)

api = build_api(ROUTERS)

handler400, handler500 = below_v1_as_openai(views.refused), below_v1_as_openai(views.failed)

urlpatterns = [
    *api_urlpatterns(api),
    *openai_urlpatterns(),
    path("mcp", mcp),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("", views.chat, name="chat"),
    path("c/<uuid:conversation_id>", views.chat, name="conversation"),
    path("memory", views.memory, name="memory"),
    path("diagram", diagram, name="diagram"),
    path("s/<str:token>", sharing_views.shared, name="shared"),
    path("setup/<str:token>", views.setup, name="setup"),
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("offline", offline_views.offline, name="offline"),
    path("service-worker.js", offline_views.service_worker),
    path("favicon.ico", views.favicon),
    # Named by module, because `include` would import sign-in and panel now instead of on the first request for them.
    URLResolver(RoutePattern("accounts/"), "chatapp.accounts.addresses"),
    URLResolver(
        RoutePattern("admin/"), "chatapp.operations.admin.addresses", app_name="admin", namespace="admin"
    ),
]
