"""Builds the REST API: its description, errors and addresses. `chatapp.urls` lists its routers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Router, Swagger
from ninja.openapi.views import openapi_view

from chatapp.accounts.callers import allow
from chatapp.operations.http.bodies import BodyParser, parse_large_bodies
from chatapp.operations.http.errors import method_not_allowed, nothing_here, register_errors

DESCRIPTION = """\
Conversations that never end and never forget.

Authenticate with `Authorization: Bearer <token>` (`POST /tokens`, or `manage.py create_token EMAIL`). JSON in and out,
times in ISO 8601 UTC, ids are opaque strings. Lists are `{"items", "next_cursor"}`; errors are
`{"error": {"code", "message", "details"?}}`. What is not yours is not found.
"""


def build_api(routers: Iterable[Router]) -> NinjaAPI:
    """Return the API with the operations of these routers, described in their order."""
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
    for router in routers:
        api.add_router("", router)
    return api


def docs(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    """Return Swagger UI, from our own static files."""
    return openapi_view(request, api)


def _in_json(pattern: Any) -> URLPattern:
    """Return the pattern with JSON answers: ninja answers a wrong method in plain text, and its root not at all."""
    if pattern.name == "api-root":
        return URLPattern(pattern.pattern, nothing_here, pattern.default_args, pattern.name)
    if pattern.name == "openapi-json":
        return URLPattern(pattern.pattern, pattern.callback, pattern.default_args, pattern.name)
    view = _awaited(pattern.callback)
    return URLPattern(pattern.pattern, view, pattern.default_args, pattern.name)


def _awaited(view: Callable[..., Any]) -> Callable[..., Any]:
    run = view if iscoroutinefunction(view) else sync_to_async(view)

    @csrf_exempt  # a session's requests are checked by `SessionAuth`
    async def answer(request: HttpRequest, **path_values: Any) -> HttpResponseBase:
        # No stored name or id has a NUL, and PostgreSQL fails when it is asked for one.
        if "\0" in request.path:
            return nothing_here(request)
        response: HttpResponseBase = await run(request, **path_values)
        if isinstance(response, HttpResponseNotAllowed):
            return method_not_allowed(request, response["Allow"])
        return response

    return answer


def api_urlpatterns(api: NinjaAPI) -> list[URLPattern | URLResolver]:
    """Return the addresses of the API. Unknown ones below /api are answered in JSON."""
    patterns, app_name, namespace = api.urls
    return [
        path(
            "api/v1/", include(([_in_json(pattern) for pattern in patterns], app_name), namespace=namespace)
        ),
        path(
            "api/",
            include(([path("docs", partial(docs, api=api), name="docs")], app_name), namespace="api-docs"),
        ),
        re_path(r"^api(?:/.*)?$", csrf_exempt(nothing_here)),
    ]
