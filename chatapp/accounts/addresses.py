"""URLs of sign-in and accounts. Imported with the first page, because passkeys alone add 5 MB and 0.1 s to a start."""

from __future__ import annotations

from django.urls import include, path

from chatapp.accounts import single_sign_on
from chatapp.operations.views import password_reset

urlpatterns = [
    path("password/reset/", password_reset),
    path("oidc/<str:provider_id>/login/", single_sign_on.begin),
    path("oidc/<str:provider_id>/login/callback/", single_sign_on.finish),
    path("3rdparty/signup/", single_sign_on.sign_up),
    path("", include("allauth.urls")),
]
