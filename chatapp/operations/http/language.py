"""Sets the language of a page: the user's choice, else the browser's. Programs always get English."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.decorators import sync_and_async_middleware

PROGRAMS = frozenset({"api", "v1", "mcp", "healthz", "readyz", "metrics", "static"})
"""First segments of paths that are not pages."""


@sync_and_async_middleware
def page_language(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            if not is_page(request):
                answered: HttpResponseBase = await get_response(request)
                return answered
            # Use a thread only if a session has to be read.
            chosen = await sync_to_async(chosen_language)(request) if has_session(request) else ""
            with translation.override(chosen or translation.get_language_from_request(request)):
                page: HttpResponseBase = await get_response(request)
                return page

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not is_page(request):
            answered: HttpResponseBase = get_response(request)
            return answered
        chosen = chosen_language(request) if has_session(request) else ""
        with translation.override(chosen or translation.get_language_from_request(request)):
            page: HttpResponseBase = get_response(request)
            return page

    return answer


def is_page(request: HttpRequest) -> bool:
    return request.path.split("/", 2)[1] not in PROGRAMS


def has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def chosen_language(request: HttpRequest) -> str:
    """Return the language that the user chose; empty if nobody is signed in or none was chosen."""
    return getattr(request.user, "language", "")
