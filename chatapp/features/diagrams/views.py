"""The frame that draws Mermaid diagrams. It runs a model's output without an origin and without network access."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Mermaid writes its colours into the picture, so inline styles are allowed, on this page only."""


@require_safe
@cache_control(no_store=True)
@xframe_options_sameorigin
def diagram(request: HttpRequest) -> HttpResponse:
    response = render(request, "diagram.html")
    response["Content-Security-Policy"] = POLICY.format(nonce=request.csp_nonce)  # type: ignore[attr-defined]
    return response
