"""The headers `If-Match`, which turns a change of an old version into a conflict, and `If-None-Match`, which saves the
way of what a client has already."""

from __future__ import annotations

import asyncio
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, set_response_etag
from ninja import Header

IfMatch = Annotated[str | None, Header(None, alias="If-Match", max_length=200)]
IfNoneMatch = Annotated[str, Header("", alias="If-None-Match", max_length=1_000)]

MAX_HASHED_BYTES = 2**20
"""Longer answers, which are whole exports, have no ETag."""
MAX_HASHED_AT_ONCE_BYTES = 2**16
"""What is longer is hashed in a thread: all other answers would wait meanwhile."""


def version_of(if_match: str | None) -> str | None:
    """Return the version between the quotes; None where any version is accepted."""
    return None if if_match is None or if_match == "*" else if_match.removeprefix("W/").strip('"')


async def with_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return an answer to GET with an ETag of its content, or 304 where the client has the same. The answer is made
    all the same, by whoever checks that it is the client's to read."""
    if request.method != "GET" or response.status_code != 200 or response.has_header("ETag"):
        return response
    if not isinstance(response, HttpResponse) or len(response.content) > MAX_HASHED_BYTES:
        return response
    if len(response.content) > MAX_HASHED_AT_ONCE_BYTES:
        await asyncio.to_thread(set_response_etag, response)
    else:
        set_response_etag(response)
    return unless_known(request, response)


def unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponseBase:
    """Return the response, which has an ETag, or 304 where `If-None-Match` names it."""
    if "If-None-Match" not in request.headers:
        return response
    found = get_conditional_response(request, etag=response["ETag"], response=response)
    if found is None or found.status_code != 304:
        return response
    for name, value in response.items():
        if name.startswith("RateLimit-"):
            found[name] = value
    return found
