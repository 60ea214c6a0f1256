"""The headers `If-Match`, which turns a change of an old version into a conflict, and `If-None-Match`, which saves the
way of what a client has already."""

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
"""Longer answers, which are whole exports, have no ETag."""
MAX_HASHED_AT_ONCE_BYTES = 2**16
"""What is longer is hashed in a thread: all other answers would wait meanwhile."""
VERSION = "X-Version-For-ETag"
"""Tells `with_etag` the version of what can be changed by `If-Match`. It is not sent."""
SENT_WITH_304 = ("X-Content-Type-Options", "Content-Security-Policy")
"""A browser keeps these of a 304 in the place of those it had."""


def tag_version(response: HttpResponse, version: object) -> None:
    """Have the ETag name the version, and the content after it: it may change while the version stays."""
    response[VERSION] = str(version)


def version_of(if_match: str | None) -> str | None:
    """Return the version that an ETag names, or that stands alone between the quotes; None where any is accepted."""
    if if_match is None or if_match.strip() == "*":
        return None
    return if_match.strip().removeprefix("W/").strip('"').partition("-")[0]


async def with_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return an answer with an ETag of its version and content, or 304 where GET asks for what the client has. The
    answer is made all the same, by whoever checks that it is the client's to read."""
    version = response.headers.get(VERSION, "")
    # For us alone: clients find the version in the ETag.
    del response[VERSION]
    if response.status_code != 200 or not (request.method == "GET" or version):
        return response
    # A file and the description have one of their own.
    if not response.has_header("ETag"):
        content = await _hash(response)
        if tags := [tag for tag in (version, content) if tag]:
            response["ETag"] = f'"{"-".join(tags)}"'
    return _unless_known(request, response) if request.method == "GET" else response


async def _hash(response: HttpResponseBase) -> str:
    """Return the hash of the content; "" of a stream, and of what is too long."""
    if not isinstance(response, HttpResponse) or not 0 < len(response.content) <= MAX_HASHED_BYTES:
        return ""
    if len(response.content) > MAX_HASHED_AT_ONCE_BYTES:
        return await asyncio.to_thread(_hash_of, response)
    return _hash_of(response)


def _hash_of(response: HttpResponse) -> str:
    return hashlib.sha256(response.content).hexdigest()[:32]


def _unless_known(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the response, or 304 where it has an ETag that `If-None-Match` names."""
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
