"""The addresses of the API. Whatever else is asked for below /api is answered in JSON, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja.openapi.views import openapi_view

from chatapp import health
from chatapp.api.errors import method_not_allowed, nothing_here
from chatapp.api.root import api


def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI, from our own static files."""
    return openapi_view(request, api)


def _in_json(pattern: Any) -> URLPattern:
    """ninja answers a wrong method in plain text, and its root not at all."""
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
        response: HttpResponseBase = await run(request, **path_values)
        if isinstance(response, HttpResponseNotAllowed):
            return method_not_allowed(request, response["Allow"])
        return response

    return answer


_patterns, _app_name, _namespace = api.urls

urlpatterns = [
    path("api/v1/", include(([_in_json(pattern) for pattern in _patterns], _app_name), namespace=_namespace)),
    path("api/", include(([path("docs", docs, name="docs")], _app_name), namespace="api-docs")),
    re_path(r"^api(?:/.*)?$", csrf_exempt(nothing_here)),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
]
