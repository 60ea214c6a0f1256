"""`Idempotency-Key`: a repeated POST creates nothing, and returns the current state of what the first one created."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase
from ninja import Status

from chatapp.accounts.callers import ApiRequest
from chatapp.accounts.idempotency_keys import KeyedRequest, KeyUsed, current_keyed_request, made_before
from chatapp.accounts.models import User
from chatapp.operations.errors import InvalidInput, ServiceError
from chatapp.operations.http.routers import in_thread
from memory.bounds import MAX_ID_CHARS

HEADER = "Idempotency-Key"

View = Callable[..., Awaitable[Any]]
AnyView = TypeVar("AnyView", bound=Callable[..., Any])
ReadAgain = Callable[[ApiRequest, str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Creation:
    """An operation that creates something. `again` returns the response from (request, id of the created thing, values
    of the request).

    `location` is its path below the API, with `{made}` for its id; empty if it has no path of its own.
    """

    again: ReadAgain
    location: str = ""


def creates(again: ReadAgain, location: str = "") -> Callable[[AnyView], AnyView]:
    """Declare that the operation creates something; its action calls `record_created_id`. Like an operation, `again` is
    a plain function if it only waits for the database."""

    def declare(view: AnyView) -> AnyView:
        view.creation = Creation(in_thread(again), location)  # type: ignore[attr-defined]
        return view

    return declare


def once_per_key(view: View) -> View:
    """Return the operation; if it `creates` something, wrapped so that it does so once for each key."""
    creation: Creation | None = getattr(view, "creation", None)
    if creation is None:
        return view

    @wraps(view)
    async def run(request: ApiRequest, **values: Any) -> Any:
        if (key := request.headers.get(HEADER)) is None:
            return _located(request, creation, values, await view(request, **values))
        asked = await sync_to_async(_asked_by)(request, key)
        made = await sync_to_async(made_before)(asked)
        if made is None:
            before = current_keyed_request.set(asked)
            try:
                return _located(request, creation, values, await view(request, **values))
            except (KeyUsed, ServiceError):
                # A conflict, e.g. a taken name, may also come from what the same request created before.
                made = await sync_to_async(made_before)(asked)
                if made is None:
                    raise
            finally:
                # Tasks that the request started, e.g. an answer, inherit the context variable and must not write
                # under the key.
                asked.end()
                current_keyed_request.reset(before)
        return _located(request, creation, values, await creation.again(request, made, values))

    return run


def tell_location(run: View) -> View:
    """Return the operation with the header `Location` for what it created."""

    @wraps(run)
    async def answer(request: ApiRequest, **path: Any) -> HttpResponseBase:
        response: HttpResponseBase = await run(request, **path)
        if response.status_code == 201 and (location := getattr(request, "location", "")):
            response["Location"] = location
        return response

    return answer


def _located(request: ApiRequest, creation: Creation, values: dict[str, Any], answer: Any) -> Any:
    if isinstance(answer, Status) and answer.status_code == 201:
        made = {"made": answer.value["id"]} if "id" in answer.value else {}
        request.location = f"/api/v1{creation.location.format(**values, **made)}"  # type: ignore[attr-defined]
    return answer


def _asked_by(request: ApiRequest, key: str) -> KeyedRequest:
    """Return the request with its key. Raise InvalidInput for a key that is empty or too long."""
    if not 0 < len(key) <= MAX_ID_CHARS:
        problem = f"must have 1 to {MAX_ID_CHARS} characters"
        raise InvalidInput.in_field(HEADER, problem, "The idempotency key is empty or too long.")
    # Include method and path, because the same key at another address is another request.
    return KeyedRequest(
        request.auth.user, _hash(f"{request.method} {request.path}\n{key}".encode()), _request_hash(request)
    )


def asked_to_edit(user: User, message_id: str, key: str | None, body: str) -> KeyedRequest | None:
    """Return the request to edit a message, with its key from the body or the header; None without a key."""
    return (
        KeyedRequest(user, _hash(f"edit {message_id}\n{key}".encode()), _hash(body.encode())) if key else None
    )


def _request_hash(request: ApiRequest) -> str:
    query = request.META.get("QUERY_STRING", "").encode()
    if not (request.content_type or "").startswith("multipart/"):
        return _hash(query + b"\n" + request.body)
    # Hash the parts of a form, because the boundary between them differs each time.
    parts = [f"{name}={request.POST.getlist(name)}" for name in sorted(request.POST)]
    for name in sorted(request.FILES):
        for file in request.FILES.getlist(name):
            # Read in chunks, because a large file on disk would take its size in memory.
            content = hashlib.sha256()
            for chunk in file.chunks():
                content.update(chunk)
            # The view reads the file from its beginning.
            file.seek(0)
            parts.append(f"{name}={file.name} {content.hexdigest()}")
    return _hash(query + b"\n" + "\n".join(parts).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
