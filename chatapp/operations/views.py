"""The pages: chat, memory, the one-time set-up, the manifest. Their contents come over the API and the socket."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from chatapp.accounts.actions import claim_setup_link
from chatapp.accounts.models import User
from chatapp.accounts.selectors import has_admin, is_setup_link
from chatapp.accounts.sign_in import SetupForm
from chatapp.conversations.access import accessible_conversation
from chatapp.operations.errors import Conflict, InvalidInput, NotFound, TooLarge

PRODUCT_NAME = "Palimpsest"
AUTHENTICATION = "allauth.account.auth_backends.AuthenticationBackend"


def product_context(request: HttpRequest) -> dict[str, Any]:
    """Return values for every template. `needs_setup` is a function, so that only pages that use it query."""
    return {
        "product_name": PRODUCT_NAME,
        "signup_is_open": settings.SIGNUP == "open",
        "needs_setup": lambda: not has_admin(),
    }


@require_GET
@login_required
@never_cache
def chat(request: HttpRequest, conversation_id: UUID | None = None) -> HttpResponse:
    if conversation_id is not None:
        try:
            accessible_conversation(_signed_in(request), conversation_id)
        except NotFound as error:
            raise Http404(error.message) from None
    return render(request, "chat.html", {"conversation_id": str(conversation_id or "")})


@require_GET
@login_required
@never_cache
def memory(request: HttpRequest) -> HttpResponse:
    return render(request, "memory.html")


@require_http_methods(["GET", "POST"])
@never_cache
@sensitive_post_parameters("password")
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Make the first visitor with the link the admin, and sign them in."""
    if not is_setup_link(token):
        return render(request, "setup_closed.html", status=404)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        try:
            admin = _claim(form, token)
        except NotFound:  # somebody else used the link first
            return render(request, "setup_closed.html", status=404)
        if admin is not None:
            login(request, admin, backend=AUTHENTICATION)
            UserSession.objects.create_from_request(request)  # as allauth's own sign-in does
            return redirect("chat")
    return render(request, "setup.html", {"form": form}, status=400 if form.errors else 200)


@require_GET
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon: browsers ask here on pages that name none, such as the API's description."""
    return redirect(static("app/icon.svg"))


@require_GET
def manifest(request: HttpRequest) -> HttpResponse:
    """Return the manifest that makes the service installable on phones."""
    content = {
        "name": PRODUCT_NAME,
        "short_name": PRODUCT_NAME,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#fdfcfa",
        "theme_color": "#fdfcfa",
        "icons": [
            {"src": static("app/icon.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
        ],
    }
    return JsonResponse(content, content_type="application/manifest+json")


def _claim(form: SetupForm, token: str) -> User | None:
    """Return the admin; None when the form has errors now. Raise NotFound."""
    try:
        return claim_setup_link(token=token, **form.cleaned_data)
    except InvalidInput as error:
        for detail in error.details:
            form.add_error(detail["field"], detail["message"])
    except TooLarge as error:
        form.add_error("name", error.message)
    except Conflict as error:
        form.add_error("email", error.message)
    return None


def _signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # login_required lets nobody else in
    return request.user
