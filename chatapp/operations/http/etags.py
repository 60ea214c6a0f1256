"""The headers `If-Match`, which refuses changes of a stale version, and `If-None-Match`, which avoids sending unchanged
content."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from ninja import Header

IfMatch = Annotated[str | None, Header(None, alias="If-Match", max_length=200)]

MAX_HASHED_BYTES = 2**20
"""Longer responses, which are whole exports, have no ETag."""
MAX_HASHED_AT_ONCE_BYTES = 2**16
"""Longer responses are hashed in a thread, or all others would wait."""
VERSION = "X-Version-For-ETag"
"""An internal header with the version for `If-Match`, read by `with_etag`. It is not sent."""
SENT_WITH_304 = ("X-Content-Type-Options", "Content-Security-Policy")
"""Browsers replace these headers of a cached response with those of a 304."""


def tag_version(response: HttpResponse, version: object) -> None:
    """Put the version in the ETag, before the hash of the content, which may change within a version."""
    response[VERSION] = str(version)


def version_of(if_match: str | None) -> str | None:
    """Return the version in an ETag, or alone between the quotes; None if any version is accepted."""
    if if_match is None or if_match.strip() == "*":
        return None
    return if_match.strip().removeprefix("W/").strip('"').partition("-")[0]


async def with_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add an ETag of the version and content, or return 304 if a GET asks for what the client has. The response is
    built in any case, because the view checks permissions."""
    version = response.headers.get(VERSION, "")
    # Internal: clients find the version in the ETag.
    del response[VERSION]
    if response.status_code != 200 or not (request.method == "GET" or version):
        return response
    # Files and the description have their own.
    if not response.has_header("ETag"):
        content = await _hash(response)
        if tags := [tag for tag in (version, content) if tag]:
            response["ETag"] = f'"{"-".join(tags)}"'
    return _unless_known(request, response) if request.method == "GET" else response


async def _hash(response: HttpResponseBase) -> str:
    """Return the hash of the content; "" for a stream, and for empty or too long content."""
    if not isinstance(response, HttpResponse) or not 0 < len(response.content) <= MAX_HASHED_BYTES:
        return ""
    if len(response.content) > MAX_HASHED_AT_ONCE_BYTES:
        return await asyncio.to_thread(_hash_of, response)
    return _hash_of(response)


def _hash_of(response: HttpResponse) -> str:
    return hashlib.sha256(response.content).hexdigest()[:32]


def _unless_known(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the response, or 304 if `If-None-Match` contains its ETag."""
    if "If-None-Match" not in request.headers or not response.has_header("ETag"):
        return response
    found = get_conditional_response(request, etag=response["ETag"], response=response)  # type: ignore[arg-type]
    if found is None or found.status_code != 304:
        return response
    for name, value in response.items():
        if name.startswith("RateLimit-") or name in SENT_WITH_304:
            found[name] = value
    response.close()
    return found
