"""Builds the REST API: its description, errors and URLs. `chatapp.urls` lists its routers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial, wraps
from inspect import unwrap
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Router, Swagger
from ninja.openapi.views import openapi_view

from chatapp.accounts.callers import allow
from chatapp.accounts.idempotency import once_per_key, tell_location
from chatapp.accounts.rate_limits import tell_rate_limits
from chatapp.operations.http.bodies import BodyParser, parse_large_bodies, refuse_unknown_fields
from chatapp.operations.http.description import described
from chatapp.operations.http.errors import (
    method_not_allowed,
    nothing_here,
    register_errors,
    unknown_parameters,
)
from chatapp.operations.http.etags import with_etag

DESCRIPTION = """\
Conversations that never end and never forget.

Authenticate with `Authorization: Bearer <token>` (`POST /tokens`, or `manage.py create_token EMAIL`). JSON in and out,
times in ISO 8601 UTC, ids are opaque strings. Lists are `{"items", "next_cursor"}`; errors are
`{"error": {"code", "message", "details"?}}`. Objects of other users are not found. Answers to GET of up to 1 MB have an
`ETag`: send it as `If-None-Match`, and what has not changed is answered with 304.
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
    api.add_decorator(refuse_unknown_parameters, mode="view")
    api.add_decorator(refuse_unknown_fields, mode="view")
    api.add_decorator(parse_large_bodies, mode="view")
    api.add_decorator(tell_rate_limits, mode="view")
    api.add_decorator(tell_location, mode="view")
    api.add_decorator(once_per_key, mode="operation")
    for router in routers:
        api.add_router("", router)
    return api


Run = Callable[..., Awaitable[HttpResponseBase]]


def refuse_unknown_parameters(run: Run, *, unused: frozenset[str] = frozenset()) -> Run:
    """Return the operation so that it refuses query parameters that are unknown and not in `unused`, like body
    fields."""
    models = unwrap(run).__self__.models
    known = unused | {
        name
        for each in models
        if each.__ninja_param_source__ == "query"
        for name in each.__ninja_flatten_map__
    }

    @wraps(run)
    async def answer(request: HttpRequest, **path: Any) -> HttpResponseBase:
        if unknown := [name for name in request.GET if name not in known]:
            return unknown_parameters(request, unknown)
        return await run(request, **path)

    return answer


Wrap = Callable[[HttpResponseBase], HttpResponseBase]


def _description(request: HttpRequest, api: NinjaAPI, prefix: str) -> HttpResponse:
    content, etag = described(api, prefix)
    response = HttpResponse(content, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"  # cached, and revalidated with the ETag
    return response


def _in_json(api: NinjaAPI, prefix: str, pattern: Any, wrap: Wrap) -> URLPattern:
    """Return the pattern with JSON responses, because ninja's 405 is plain text and its root has no response."""
    found = pattern.callback
    if pattern.name == "openapi-json":
        found = partial(_description, api=api, prefix=f"/{prefix}")
    elif pattern.name == "api-root":
        found = nothing_here
    return URLPattern(pattern.pattern, _awaited(found, wrap), pattern.default_args, pattern.name)


def _awaited(view: Callable[..., Any], wrap: Wrap) -> Callable[..., Any]:
    run = view if iscoroutinefunction(view) else sync_to_async(view)

    @csrf_exempt  # `SessionAuth` checks requests of sessions
    async def answer(request: HttpRequest, **path_values: Any) -> HttpResponseBase:
        # No stored name or id contains NUL, and PostgreSQL raises an error for one.
        if "\0" in request.path:
            return wrap(nothing_here(request))
        is_head = request.method == "HEAD"
        if is_head:
            request.method = "GET"  # the same response, without the body
        response: HttpResponseBase = await run(request, **path_values)
        if isinstance(response, HttpResponseNotAllowed):
            request.method = "HEAD" if is_head else request.method
            methods = set(response["Allow"].split(", "))
            allowed = sorted(methods | {"HEAD"} if "GET" in methods else methods)
            response = method_not_allowed(request, ", ".join(allowed))
        response = await with_etag(request, wrap(response))
        return _without_body(response) if is_head else response

    return answer


def _without_body(response: HttpResponseBase) -> HttpResponseBase:
    """Return the response to HEAD: the headers that GET would have. A stream is not started."""
    bare = StreamingHttpResponse(status=response.status_code)
    for name, value in response.items():
        bare[name] = value
    # Clients use HEAD to learn the length of GET's response.
    if isinstance(response, HttpResponse):
        bare["Content-Length"] = str(len(response.content))
    bare.streaming_content = _nothing()
    # It may hold a file open for a body that is never sent.
    response.close()
    return bare


async def _nothing() -> AsyncIterator[bytes]:
    for chunk in tuple[bytes, ...]():
        yield chunk


def json_patterns(
    api: NinjaAPI, prefix: str, wrap: Wrap = lambda response: response
) -> list[URLPattern | URLResolver]:
    """Return the URL patterns of an API below a prefix. Each response goes through `wrap`."""
    patterns, app_name, namespace = api.urls
    return [
        path(
            f"{prefix}/",
            include(
                ([_in_json(api, prefix, pattern, wrap) for pattern in patterns], app_name),
                namespace=namespace,
            ),
        ),
        re_path(rf"^{prefix}(?:/.*)?$", _awaited(nothing_here, wrap)),
    ]


def api_urlpatterns(api: NinjaAPI) -> list[URLPattern | URLResolver]:
    """Return the URL patterns of the API. Unknown ones below /api get a response in JSON."""
    return [
        *json_patterns(api, "api/v1"),
        path(
            "api/",
            include(
                ([path("docs", partial(openapi_view, api=api), name="docs")], api.urls[1]),
                namespace="api-docs",
            ),
        ),
        re_path(r"^api(?:/.*)?$", csrf_exempt(nothing_here)),
    ]
