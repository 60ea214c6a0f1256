"""Sets the language of a page: the user's choice, else the browser's. Programs always get English."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation

PROGRAMS = frozenset({"api", "v1", "mcp", "healthz", "readyz", "metrics", "static"})
"""First segments of paths that are not pages."""


def page_language(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Serve pages in their language. All middleware is synchronous, as allauth's is: Django switches once."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not is_page(request):
            return get_response(request)
        chosen = chosen_language(request) if has_session(request) else ""
        with translation.override(chosen or translation.get_language_from_request(request)):
            return get_response(request)

    return answer


def is_page(request: HttpRequest) -> bool:
    return request.path.split("/", 2)[1] not in PROGRAMS


def has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def chosen_language(request: HttpRequest) -> str:
    """Return the language that the user chose; empty if nobody is signed in or none was chosen."""
    return getattr(request.user, "language", "")
