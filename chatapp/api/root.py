"""The API as one: its routers, its description, its errors."""

from __future__ import annotations

from ninja import NinjaAPI, Swagger

from chatapp.api import (
    account,
    agents,
    compactions,
    conversations,
    events,
    exports,
    imports,
    injecting,
    messages,
    offloads,
    runs,
    tool_calls,
    tools,
)
from chatapp.api.auth import allow
from chatapp.api.bodies import BodyParser, parse_large_bodies
from chatapp.api.errors import register_errors
from chatapp.api.files import files_router
from chatapp.api.forgetting import forgetting_router
from chatapp.api.memory import memory_router
from chatapp.api.memory_entries import entries_router
from chatapp.api.memory_search import search_router
from chatapp.api.memory_settings import settings_router
from chatapp.api.memory_shared import shared_router
from chatapp.api.memory_stats import stats_router
from chatapp.api.profile import profile_router

DESCRIPTION = """\
Conversations that never end and never forget.

Authenticate with `Authorization: Bearer <token>` (`POST /tokens`, or `manage.py create_token EMAIL`). JSON in and out,
times in ISO 8601 UTC, ids are opaque strings. Lists are `{"items", "next_cursor"}`; errors are
`{"error": {"code", "message", "details"?}}`. What is not yours is not found.
"""

api = NinjaAPI(
    title="Palimpsest",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    openapi_url="/openapi.json",
    docs=Swagger(),
    docs_url=None,
    auth=allow("admin"),
    parser=BodyParser(),
)
register_errors(api)
api.add_decorator(parse_large_bodies, mode="view")
for router in (
    account.router,
    agents.router,
    imports.router,  # before conversations: /conversations/import is not an id
    conversations.router,
    messages.router,
    injecting.router,
    events.router,
    runs.router,
    tool_calls.router,
    compactions.router,
    exports.router,
    offloads.router,
    tools.router,
    files_router,
    forgetting_router,
    memory_router,
    entries_router,
    settings_router,
    shared_router,
    stats_router,
    profile_router,
    search_router,
):
    api.add_router("", router)
