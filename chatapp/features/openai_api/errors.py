"""Returns errors below /v1 in the shape that OpenAI's clients read."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import NinjaAPI

from agents.errors import ModelError
from chatapp.accounts.budgets.values import seconds_to_reset
from chatapp.operations import clock
from chatapp.operations.errors import ServiceError
from chatapp.operations.http.errors import error_response

STATUS_OF_CATEGORY = {
    "overflow": 400,
    "bad_request": 400,
    "content_filter": 400,
    "rate_limit": 429,
    "quota": 429,
    "budget": 429,
    "timeout": 504,
    "stalled": 504,
    "too_large": 400,  # no model was called
    "interrupted": 503,  # the process that wrote the answer ended; no provider failed
}
"""All other categories are failures between this service and the provider: 502."""
# Codes that OpenAI's clients know. All other codes are our own.
CODES = {
    "overflow": "context_length_exceeded",
    "rate_limit": "rate_limit_exceeded",
    "rate_limited": "rate_limit_exceeded",
    "quota": "insufficient_quota",
    "budget": "insufficient_quota",
    "unauthorized": "invalid_api_key",
    "malformed": "invalid_json",
}
CODE_OF_FIELD_ERROR = {"extra_forbidden": "unknown_parameter", "missing": "missing_required_parameter"}
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Unsupported(ServiceError):
    """A part of OpenAI's protocol that this service does not offer."""

    code = "unsupported_parameter"
    status = 400

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message, details=[{"field": param, "message": message, "type": self.code}])


class RunFailed(ServiceError):
    """The answer in a conversation failed. The question is stored, so clients must not send it again.

    For the category `budget`, `detail` contains the time when the budget resets.
    """

    code = "server_error"

    def __init__(self, category: str, message: str, detail: str = "") -> None:
        super().__init__(message, code=category)
        self.detail = detail
        self.status = status_of(category)


def status_of(category: str) -> int:
    """Return the HTTP status of a failed model call."""
    return STATUS_OF_CATEGORY.get(category, 502)


def register_model_errors(api: NinjaAPI) -> None:
    """Register handlers for failed model calls and runs. Clients must not repeat what is stored already."""
    api.add_exception_handler(ModelError, _model_error)
    api.add_exception_handler(RunFailed, _run_failed)


def _model_error(request: HttpRequest, error: Any) -> HttpResponse:
    response = error_response(status_of(error.category), error.category, _without_storing(error.message))
    if error.category == "budget":  # a retry within seconds would fail, too
        response["X-Should-Retry"] = "false"
    if error.retry_after_s is not None and response.status_code == 429:
        response["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return response


def _without_storing(sentence: str) -> str:
    """Return the part before the first "; ". The rest is about the chat, e.g. what is stored, or a button."""
    return sentence.partition("; ")[0].rstrip(".") + "."


def _run_failed(request: HttpRequest, error: Any) -> HttpResponse:
    response = error_response(error.status, error.code, error.message)
    response["X-Should-Retry"] = "false"
    if error.code == "budget":
        response["Retry-After"] = str(seconds_to_reset(error.detail, clock.now()))
    return response


def error_body(status: int, code: str, message: str, details: Any = None) -> dict[str, Any]:
    """Return `{"error": {"message", "type", "param", "code"}}`."""
    kind = "server_error" if status >= 500 else TYPES.get(status, "invalid_request_error")
    param = None
    if isinstance(details, list) and details and isinstance(details[0], dict):
        param = details[0].get("field")
        code = CODE_OF_FIELD_ERROR.get(details[0].get("type", ""), code)
        if code == "unknown_parameter":
            message = f"Unrecognized request argument supplied: {param}"
    return {"error": {"message": message, "type": kind, "param": param, "code": CODES.get(code, code)}}


def in_openai_shape(response: HttpResponseBase) -> HttpResponseBase:
    """Return an error in OpenAI's shape, with its headers; any other response unchanged."""
    # The content of a stream cannot be rewritten.
    if response.status_code < 400 or not isinstance(response, HttpResponse) or not response.content:
        return response
    error = json.loads(response.content)["error"]
    # OpenAI responds to an invalid body with 400, and its client raises another error for 422.
    if response.status_code == 422:
        response.status_code = 400
    body = error_body(response.status_code, error["code"], error["message"], error.get("details"))
    response.content = json.dumps(body, ensure_ascii=False).encode()
    return response


def below_v1_as_openai(handler: Callable[..., HttpResponse]) -> Callable[..., HttpResponseBase]:
    """Wrap a Django error handler, whose requests reach no operation, to respond below /v1 in OpenAI's shape."""

    @wraps(handler)
    def answer(request: HttpRequest, *arguments: Any, **more: Any) -> HttpResponseBase:
        response = handler(request, *arguments, **more)
        return in_openai_shape(response) if request.path.startswith("/v1/") else response

    return answer
