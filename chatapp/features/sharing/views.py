"""The page of a share link."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chatapp.features.sharing.selectors import shared_conversation
from chatapp.operations import clock
from chatapp.operations.errors import NotFound


@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show the snapshot to everybody who has the link. Search engines must not index it."""
    try:
        row = shared_conversation(token, clock.now())
    except NotFound as error:
        raise Http404(error.message) from None
    page = {"token": token, "is_signed_in": request.user.is_authenticated, "title": row.title}
    response = render(request, "shared.html", {"shared": page})
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Cache-Control"] = "private, no-store"
    # The URL is the secret, and links in the answers lead to other hosts.
    response["Referrer-Policy"] = "no-referrer"
    return response
