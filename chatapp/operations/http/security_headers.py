"""Adds headers to every response: content security policy, permissions policy and cache control."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# The page uses the clipboard and, on request, the microphone, but no other device and no location.
PERMISSIONS = ", ".join(
    [
        *(
            f"{name}=()"
            for name in (
                "accelerometer", "browsing-topics", "camera", "display-capture", "geolocation", "gyroscope",
                "magnetometer", "midi", "payment", "serial", "usb",
                "xr-spatial-tracking",
            )
        ),
        "microphone=(self)",  # dictation, by the browser's own speech recognition
        "publickey-credentials-create=(self)",
        "publickey-credentials-get=(self)",
    ]
)  # fmt: skip
NOT_KEPT = "private, no-store"
"""The default of all responses: private content must not be cached."""

TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types dompurify service-worker"
# jQuery in the admin and Swagger in the API page write HTML strings. Neither shows output of a model.
PAGES_WITHOUT_TRUSTED_TYPES = frozenset({"admin", "ninja"})


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    def answer(request: HttpRequest) -> HttpResponseBase:
        request.csp_nonce = secrets.token_urlsafe(16)  # type: ignore[attr-defined]
        return with_policy(request, get_response(request))

    return answer


def with_policy(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers that the view has not set, and return the response."""
    match = request.resolver_match
    is_exempt = match is not None and bool(PAGES_WITHOUT_TRUSTED_TYPES & set(match.app_names))
    nonce = request.csp_nonce  # type: ignore[attr-defined]
    policy = POLICY.format(nonce=nonce) + ("" if is_exempt else TRUSTED_TYPES)
    response.headers.setdefault("Content-Security-Policy", policy)
    response.headers.setdefault("Permissions-Policy", PERMISSIONS)
    response.headers.setdefault("Cache-Control", NOT_KEPT)
    return response
