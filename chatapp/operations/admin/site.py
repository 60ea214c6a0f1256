"""The admin site: the sign-in of the service, with its second factor; not found for other users."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import logout
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache

View = Callable[..., HttpResponseBase]


def _filters_list(request: HttpRequest) -> bool:
    """Return whether the address filters a list, perhaps with impossible values such as `created_at__year=-1`."""
    match = request.resolver_match
    return bool(request.GET) and match is not None and (match.url_name or "").endswith("_changelist")


class PalimpsestAdminSite(AdminSite):
    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Administration"
    site_url = "/"
    enable_nav_sidebar = True

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return the view for operators; other users who are signed in get 404, not a second sign-in."""
        guarded: View = super().admin_view(view, cacheable)

        def only_operators(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                raise Http404
            try:
                return guarded(request, *args, **kwargs)
            except (OverflowError, DataError) as error:
                raise BadRequest("A number or date here is larger than the database holds.") from error
            except ValueError as error:
                if not _filters_list(request):
                    raise
                raise BadRequest("A filter in this address has a value that cannot be.") from error

        return update_wrapper(only_operators, guarded)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise Http404
        query = {"next": request.GET.get("next") or "/admin/"}
        response: HttpResponse = redirect("account_login")
        response["Location"] += "?" + urlencode(query)
        return response

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        logout(request)
        return redirect("account_login")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return redirect("account_change_password")
