"""Parses bodies: once, in a thread if they are large, without characters that cannot be stored.

A Markdown body is read as `{"markdown": …}`, a YAML body as `{"yaml": …}`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from inspect import unwrap
from typing import Any, NoReturn

import pydantic
from asgiref.sync import sync_to_async
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.params.models import ParamModel
from ninja.parser import Parser

from chatapp.operations.database.text import normalize_text
from chatapp.operations.errors import InvalidInput, Malformed, ServiceError
from memory.bounds import MAX_JSON_DEPTH

TEXT_BODIES = {
    "text/markdown": "markdown",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "text/yaml": "yaml",
}
BYTES = "application/octet-stream"
"""The type of bodies that are stored unchanged."""
LARGE_BYTES = 64 * 1024
MAX_FIELDS = 20
"""The maximum number of unknown fields in an error."""
# NUL and surrogates: only these escapes can produce characters that no database stores.
_SUSPICIOUS = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


class BodyParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body, or an instance of its schema if it was already validated, which ninja accepts unchanged.
        Raise Malformed, or ValidationError if that validation failed."""
        checked = getattr(request, "checked_body", None)
        if isinstance(checked, ValidationError):
            raise checked
        return body_of(request, _parser_of(request)) if checked is None else checked


def _parser_of(request: HttpRequest) -> Callable[[bytes], Any]:
    field = TEXT_BODIES.get(request.content_type or "")
    return partial(parse_text, field) if field else parse_json


def parse_text(field: str, raw: bytes) -> Any:
    """Return {field: text}. Raise Malformed."""
    try:
        return _normalized({field: raw.decode("utf-8")})
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8 text.") from None


def body_of(request: HttpRequest, parse: Callable[[bytes], Any] | None = None) -> Any:
    """Return the parsed body, cached on the request; None if it is not parsed yet and `parse` is None."""
    if not hasattr(request, "parsed_body"):
        if parse is None:
            return None
        request.parsed_body = parse(request.body)  # type: ignore[attr-defined]
    return request.parsed_body  # type: ignore[attr-defined]


def parse_json(raw: bytes) -> Any:
    """Return the value, with all its strings storable. Raise Malformed."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
        _check_depth(value, raw)
        return _normalized(value) if _SUSPICIOUS.search(raw) else value
    except RecursionError:
        raise Malformed("The body is not valid JSON: lists and objects are nested too deeply.") from None
    except ValueError as error:
        # Python's message about long numbers is for programmers.
        told = "a number has too many digits" if "set_int_max_str_digits" in str(error) else error
        raise Malformed(f"The body is not valid JSON: {told}") from None


def _check_depth(value: Any, raw: bytes) -> None:
    """Raise ValueError for a value nested too deeply."""
    # With so few brackets nothing is nested too deeply, so most bodies need no traversal.
    if raw.count(b"[") + raw.count(b"{") <= MAX_JSON_DEPTH:
        return
    level = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ValueError(f"lists and objects inside each other are more than {MAX_JSON_DEPTH} deep")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    """Raise ValueError for a number that Python reads as infinity, which JSON cannot represent."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"the number {number[:40]} is too large")
    return value


def _normalized(value: Any) -> Any:
    if isinstance(value, str):
        return normalize_text(value, len(value))
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    if isinstance(value, dict):
        return {_normalized(key): _normalized(item) for key, item in value.items()}
    return value


Run = Callable[..., Awaitable[HttpResponseBase]]


def parse_large_bodies(run: Run, *, has_long_lists: bool = False) -> Run:
    """Return the operation so that large bodies are parsed in a thread first, and validated there with
    `has_long_lists`.

    The operation reports errors, because it first authenticates the caller.
    """
    operation = unwrap(run).__self__
    schemas = [each for each in operation.models if has_long_lists and each.__ninja_param_source__ == "body"]

    @wraps(run)
    async def parse_first(request: HttpRequest, **path: Any) -> HttpResponseBase:
        if request.content_type in TEXT_BODIES and request.META.get("CONTENT_LENGTH") == "0":
            request._body = b"\n"  # an empty text is valid, but ninja would see no body
        # Do not parse bodies of requests without credentials, which the operation refuses.
        if _is_large(request) and _shows_sign_in(request):
            with suppress(*UNREADABLE):
                # In any thread, because the database is not used.
                await sync_to_async(_parse, thread_sensitive=False)(request)
                if schemas:
                    check = sync_to_async(_check, thread_sensitive=False)
                    request.checked_body = await check(request, operation.api, *schemas)  # type: ignore[attr-defined]
        return await run(request, **path)

    return parse_first


UNREADABLE = (ServiceError, MultiPartParserError, SuspiciousOperation, UnreadablePostError)
"""Errors of reading a body, to which the API responds."""


def refuse_unknown_fields(run: Run) -> Run:
    """Return the operation so that it refuses fields that no schema refuses: any in the body of an operation without
    one, unknown ones of a form, and a second file of the same name. An empty body or `{}` has no fields."""
    operation = unwrap(run).__self__
    models = {each.__ninja_param_source__: each for each in operation.models}
    if "body" in models or "requestBody" in (operation.openapi_extra or {}) or "GET" in operation.methods:
        return run
    known = frozenset(models["file"].model_fields) if "file" in models else frozenset[str]()

    @wraps(run)
    async def answer(request: HttpRequest, **path: Any) -> HttpResponseBase:
        # Do not parse bodies of requests without credentials, which the operation refuses.
        if _shows_sign_in(request):
            try:
                _check_fields(request, known)
            except UNREADABLE as error:
                # Authentication errors take precedence.
                refused: HttpResponseBase | None = await operation._run_authentication(request)
                return refused or operation.api.on_exception(request, error)
        return await run(request, **path)

    return answer


def _check_fields(request: HttpRequest, known: frozenset[str]) -> None:
    """Raise InvalidInput for a field that is unknown or sent twice, and Malformed for an invalid body."""
    if (request.content_type or "").startswith("multipart/"):
        sent = [*request.POST, *(name for name, files in request.FILES.lists() for _ in files)]
    else:
        body = body_of(request, _parser_of(request)) if request.body.strip() else {}
        sent = list(body) if isinstance(body, dict) else ["body"]
    details = [
        {"field": name, "message": "is sent twice" if name in known else "is not a field of this request"}
        for number, name in enumerate(sent)
        if name not in known or name in sent[:number]
    ]
    if details:
        raise InvalidInput(f"{details[0]['field']}: {details[0]['message']}", details=details[:MAX_FIELDS])


def _shows_sign_in(request: HttpRequest) -> bool:
    return "Authorization" in request.headers or bool(request.COOKIES)


def _is_large(request: HttpRequest) -> bool:
    return int(request.META.get("CONTENT_LENGTH") or 0) > LARGE_BYTES


def _parse(request: HttpRequest) -> None:
    if (request.content_type or "").startswith("multipart/"):
        _ = request.FILES  # cached on the request
    elif request.content_type != BYTES:
        body_of(request, _parser_of(request))


def _check(request: HttpRequest, api: NinjaAPI, schema: type[ParamModel]) -> Any:
    """Return the body as an instance of its schema, or the validation error."""
    try:
        [(_, body)] = schema.resolve(request, api, {})
    except pydantic.ValidationError as error:
        return api.validation_error_from_error_contexts([ValidationErrorContext(error, schema)])
    return body
