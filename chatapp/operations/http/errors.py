"""Returns errors as `{"error": {"code", "message", "details"?}}` with the right status."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from chatapp.operations.database.outages import (
    describe_outage,
    is_deleted_concurrently,
    is_disk_full,
    is_outage,
)
from chatapp.operations.errors import (
    DeletedConcurrently,
    DiskFull,
    Failed,
    Malformed,
    RateLimited,
    ServiceError,
    TooLarge,
    Unauthorized,
)
from chatapp.operations.http.bodies import body_of

log = logging.getLogger(__name__)

_ITEMS_OF_A_TEXT = re.compile(r"^(Value should .*)item(s?) after validation")
MAX_DETAILS = 100
"""The maximum number of invalid fields in an error. Each is compared with all others, and a body may have 20,000."""
NOTHING_HERE = "There is nothing at this address. The API is described at /api/docs."


def error_response(status: int, code: str, message: str, details: Any = None) -> JsonResponse:
    error: dict[str, Any] = {"code": code, "message": message}
    if details is not None:
        error["details"] = details
    return JsonResponse({"error": error}, status=status)


def register_errors(api: NinjaAPI) -> None:
    for kind, answer in HANDLERS:
        api.add_exception_handler(kind, answer)


def service_error(request: HttpRequest, error: ServiceError) -> HttpResponse:
    response = error_response(error.status, error.code, error.message, error.details)
    if isinstance(error, RateLimited):
        response["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def invalid_input(request: HttpRequest, error: ValidationError) -> HttpResponse:
    found = [_detail(item, body_of(request)) for item in error.errors[:MAX_DETAILS]]
    details = [each for each in found if not any(map(partial(_reads_farther, each), found))]
    first = details[0]
    return error_response(422, "invalid", f"{first['field']}: {first['message']}", details)


def unknown_parameters(request: HttpRequest, names: Sequence[str]) -> HttpResponse:
    details = [
        {"field": name, "message": "is not a parameter of this endpoint", "type": "extra_forbidden"}
        for name in names
    ]
    return error_response(422, "invalid", f"{names[0]}: {details[0]['message']}", details)


def _reads_farther(detail: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether `detail` only says that a value is not of one type of a union, and `other` says what is wrong with
    it as another type."""
    if not detail["type"].endswith("_type"):
        return False
    is_same = other["field"] == detail["field"] and not other["type"].endswith("_type")
    return is_same or other["field"].startswith(f"{detail['field']}.")


def _detail(item: Mapping[str, Any], body: Any) -> dict[str, str]:
    path = field_path(item["loc"], body, is_missing=item["type"] == "missing")
    message = item["msg"].removeprefix("Value error, ")
    # If a text is normalised before its length is checked, pydantic calls it a value and its characters items.
    message = _ITEMS_OF_A_TEXT.sub(r"\1character\2", message)
    return {"field": path, "message": message, "type": item["type"]}


def field_path(location: Sequence[str | int], body: Any, is_missing: bool = False) -> str:
    """Return a path in the sent body, such as `content.0.text`, without the names of unions and parameters."""
    source, *steps = location
    if source != "body":
        return ".".join(str(step) for step in steps)
    inside, missing = (steps[1:-1], steps[1:][-1:]) if is_missing else (steps[1:], [])
    path = [*_steps_in(body, inside), *missing]
    return ".".join(str(step) for step in path) or "body"


def _steps_in(value: Any, steps: Sequence[str | int]) -> list[str | int]:
    """Return the steps that exist in the value. Other steps are names of union members.

    A field may have the name of a union member, as in `content.parts.0.text.text`.
    """
    if not steps:
        return []
    step, *rest = steps
    skipped = _steps_in(value, rest)
    is_index = isinstance(value, list) and isinstance(step, int) and step < len(value)
    if not (is_index or (isinstance(value, dict) and step in value)):
        return skipped
    taken = [step, *_steps_in(value[step], rest)]
    return max(taken, skipped, key=lambda path: (path[-1:] == list(steps[-1:]), len(path)))


def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, ServiceError):
        return service_error(request, error.__cause__)
    if isinstance(error.__cause__, ValidationError):
        return invalid_input(request, error.__cause__)
    codes = {400: "malformed", 403: "forbidden"}
    return error_response(error.status_code, codes.get(error.status_code, "error"), f"{error}.")


def nothing_here(request: HttpRequest, error: Any = None) -> HttpResponse:
    return error_response(404, "not_found", NOTHING_HERE)


def method_not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    sentence = f"{request.method} is not allowed here. Allowed: {allowed}."
    response = error_response(405, "method_not_allowed", sentence)
    response["Allow"] = allowed
    return response


def database_away(request: HttpRequest, error: OperationalError | InterfaceError) -> HttpResponse:
    if not is_outage(error):
        return unexpected(request, error)
    log.error("The database failed during %s %s.", request.method, request.path, exc_info=error)
    response = service_error(request, describe_outage(error))
    response["Retry-After"] = "5"
    return response


def write_failed(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    if not is_deleted_concurrently(error):
        return unexpected(request, error)
    log.info("%s %s failed because a row was deleted: %s", request.method, request.path, error)
    return service_error(request, DeletedConcurrently())


def file_failed(request: HttpRequest, error: OSError) -> HttpResponse:
    if not is_disk_full(error):
        return unexpected(request, error)
    log.error("No disk space for %s %s.", request.method, request.path, exc_info=error)
    return service_error(request, DiskFull())


def unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("%s %s failed.", request.method, request.path, exc_info=error)
    return service_error(request, Failed())


Handler = Callable[[HttpRequest, Any], HttpResponse]


def _always(error: ServiceError) -> Handler:
    return lambda request, _: service_error(request, error)


_BAD_FORM = _always(Malformed("The form in the body is not valid."))
# Ninja chooses the handler of the nearest class, regardless of order.
HANDLERS: list[tuple[type[Exception], Handler]] = [
    (ServiceError, service_error),
    (
        AuthenticationError,
        _always(Unauthorized("Sign in, or send an API token as `Authorization: Bearer <token>`.")),
    ),
    (ValidationError, invalid_input),
    (HttpError, http_error),
    (RequestDataTooBig, _always(TooLarge("The request is larger than this service accepts."))),
    (UnreadablePostError, _always(Malformed("The request ended before it was complete."))),
    (MultiPartParserError, _BAD_FORM),
    (SuspiciousOperation, _BAD_FORM),
    (Http404, nothing_here),
    (OperationalError, database_away),
    (InterfaceError, database_away),
    (DatabaseError, write_failed),
    (OSError, file_failed),
    (Exception, unexpected),
]
