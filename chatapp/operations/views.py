"""The pages: chat, memory, the one-time set-up, the manifest. Their content is loaded over the API and the socket."""

from __future__ import annotations

import sys
from typing import Any
from uuid import UUID

from allauth.account.views import password_reset as allauth_password_reset
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template import loader
from django.templatetags.static import static
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe
from django.views.defaults import bad_request, server_error

from chatapp.accounts.actions import claim_setup_link
from chatapp.accounts.models import User
from chatapp.accounts.selectors import has_admin, is_setup_link
from chatapp.accounts.sign_in import SetupForm
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.schemas.conversations import days_kept
from chatapp.conversations.selectors.conversations import retention_days_of
from chatapp.operations.configuration.changeable_settings import change_setting, current, has_mail
from chatapp.operations.database.outages import describe_outage, is_outage
from chatapp.operations.errors import Conflict, Failed, InvalidInput, NotFound, TooLarge
from chatapp.operations.http.errors import error_response, service_error

PRODUCT_NAME = "Palimpsest"
AUTHENTICATION = "chatapp.accounts.sign_in.BoundedBackend"


def product_context(request: HttpRequest) -> dict[str, Any]:
    """Return values for every template. Those that query are functions, so that only pages that use them do so."""
    return {
        "product_name": PRODUCT_NAME,
        "signup_is_open": lambda: current("SIGNUP") == "open",
        "signup_needs_invitation": lambda: current("SIGNUP") == "invite",
        "single_sign_on": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
        "has_mail": has_mail,
        "needs_setup": lambda: not has_admin(),
    }


@require_safe
@login_required
@never_cache
def chat(request: HttpRequest, conversation_id: UUID | None = None) -> HttpResponse:
    user = _signed_in(request)
    if conversation_id is not None:
        try:
            accessible_conversation(user, conversation_id)
        except NotFound as error:
            raise Http404(error.message) from None
    retention_days = retention_days_of(user.pk, current("RETENTION_DAYS"))
    shown = {
        "retention_days": retention_days,
        "temporary_days": days_kept(retention_days, temporary=True),
        "trash_days": current("TRASH_DAYS"),
        "operators_read": settings.OPERATORS_READ_CHATS,
    }
    return render(request, "chat.html", shown)


@require_safe
@login_required
@never_cache
def memory(request: HttpRequest) -> HttpResponse:
    return render(request, "memory.html")


@require_http_methods(["GET", "POST"])
@never_cache
@sensitive_post_parameters("password")
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Make the first visitor with the link the admin, and sign the visitor in."""
    if not is_setup_link(token):
        return render(request, "setup_closed.html", status=404)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        try:
            admin = _claim(form, token)
        except NotFound:  # somebody else has used the link
            return render(request, "setup_closed.html", status=404)
        if admin is not None:
            login(request, admin, backend=AUTHENTICATION)
            UserSession.objects.create_from_request(request)  # as allauth's own sign-in does
            return redirect("chat")
    return render(request, "setup.html", {"form": form}, status=400 if form.errors else 200)


def failed(request: HttpRequest) -> HttpResponse:
    """Respond to a request, of a page or of the API, whose error was not caught."""
    # Django calls this while it handles the error, but does not pass it.
    error = sys.exc_info()[1]
    outage = describe_outage(error) if error is not None and is_outage(error) else None
    if is_for_programs(request):
        return service_error(request, outage or Failed())
    if outage is None:
        return server_error(request)
    return HttpResponse(loader.render_to_string("503.html", {"sentence": outage.message}), status=503)


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond to a request that Django refuses before routing, e.g. for an unknown host."""
    if not is_for_programs(request):
        return bad_request(request, exception)
    sentence = "This request cannot be answered."
    if isinstance(exception, DisallowedHost):
        sentence = "This service is not available under this host name: see PUBLIC_URL and ALLOWED_HOSTS."
    return error_response(400, "malformed", sentence)


def is_for_programs(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/v1/"))


def password_reset(request: HttpRequest) -> HttpResponseBase:
    """Show the form of a password reset, or say whom to ask if no mail is sent."""
    if not has_mail():
        return render(request, "account/no_mail.html", status=404)
    response: HttpResponseBase = allauth_password_reset(request)
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon. Browsers request it on pages that name none, such as the API's description."""
    return redirect(static("app/icon.svg"))


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    """Return the manifest that makes the service installable on phones."""
    content = {
        "name": PRODUCT_NAME,
        "short_name": PRODUCT_NAME,
        "id": "/",
        "lang": get_language(),
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#fdfcfa",
        "theme_color": "#fdfcfa",
        "icons": [
            {"src": static("app/icon.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
            _png_icon("app/icon-192.png", 192, "any"),
            _png_icon("app/icon-512.png", 512, "any"),
            _png_icon("app/icon-maskable-512.png", 512, "maskable"),
        ],
    }
    return JsonResponse(content, content_type="application/manifest+json")


def _png_icon(name: str, size: int, purpose: str) -> dict[str, str]:
    return {"src": static(name), "sizes": f"{size}x{size}", "type": "image/png", "purpose": purpose}


def _claim(form: SetupForm, token: str) -> User | None:
    """Create the admin. Return None after adding errors to the form. Raise NotFound if the link is invalid."""
    try:
        asked = {**form.cleaned_data}
        days = asked.pop("retention_days", "")
        admin = claim_setup_link(token=token, **asked)
        if days:
            change_setting(name="RETENTION_DAYS", raw=days, actor_id=admin.pk)
        return admin
    except InvalidInput as error:
        for detail in error.details:
            form.add_error(detail["field"], detail["message"])
    except TooLarge as error:
        form.add_error("name", error.message)
    except Conflict as error:
        form.add_error("email", error.message)
    return None


def _signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # login_required admits only users
    return request.user
