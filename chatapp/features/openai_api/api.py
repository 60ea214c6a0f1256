"""Builds the API below /v1, with all errors in OpenAI's shape.

It has no description of its own: OpenAI's is the contract, and docs/api.md says which parts are supported.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI, Router

from chatapp.accounts.callers import allow
from chatapp.accounts.idempotency import once_per_key
from chatapp.accounts.rate_limits import tell_rate_limits
from chatapp.features.openai_api import completions, conversations, models_api, responses
from chatapp.features.openai_api.errors import in_openai_shape, register_model_errors
from chatapp.operations.http.api import json_patterns, refuse_unknown_parameters
from chatapp.operations.http.bodies import BodyParser, parse_large_bodies, refuse_unknown_fields
from chatapp.operations.http.errors import register_errors

ROUTERS = (models_api.router, completions.router, responses.router, conversations.router)

UNUSED = frozenset({"include", "include[]"})
"""Query parameters that are accepted but ignored. OpenAI's clients write lists in the second form."""


def build_openai_api(routers: Iterable[Router] = ROUTERS) -> NinjaAPI:
    api = NinjaAPI(
        title="OpenAI-compatible",
        version="1",
        urls_namespace="openai",
        openapi_url=None,
        docs_url=None,
        # The default for operations that declare no rights.
        auth=allow("admin"),
        parser=BodyParser(),
    )
    register_errors(api)
    register_model_errors(api)
    api.add_decorator(partial(refuse_unknown_parameters, unused=UNUSED), mode="view")
    api.add_decorator(refuse_unknown_fields, mode="view")
    api.add_decorator(partial(parse_large_bodies, has_long_lists=True), mode="view")
    api.add_decorator(tell_rate_limits, mode="view")
    api.add_decorator(once_per_key, mode="operation")
    for router in routers:
        api.add_router("", router)
    return api


def openai_urlpatterns() -> list[URLPattern | URLResolver]:
    """Return the URL patterns below /v1. Unknown paths get a JSON error, too."""
    return json_patterns(build_openai_api(), "v1", in_openai_shape)
