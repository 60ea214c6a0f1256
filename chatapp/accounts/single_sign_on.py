"""Signing in at an OpenID Connect issuer: whom it lets in, which account is theirs, and which groups they are in."""

from __future__ import annotations

import hmac
import logging
import secrets
from traceback import walk_tb
from typing import Any

from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthProcess, Provider
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import callback as oidc_callback
from allauth.socialaccount.providers.openid_connect.views import login as oidc_login
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, transaction
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from requests import RequestException

from agents.text import is_storable, storable_text
from chatapp.accounts.actions import follow_groups, release_address
from chatapp.accounts.invitations.signing_up import accept_invitation, invitation_in
from chatapp.accounts.models import User
from chatapp.accounts.selectors import owners_of, proven_owner
from chatapp.operations.changeable_settings import current

log = logging.getLogger(__name__)

PROVIDER = "sso"
"""Our name for the issuer, in addresses: /accounts/oidc/sso/login/."""
NONCE = "nonce"
ODD = (AttributeError, DataError, ImproperlyConfigured, KeyError, OverflowError, TypeError, ValueError)
"""What allauth raises where an answer of the issuer is not what the standard says: it looks at few types, and asks
the operator for a longer column where a subject is too long. What our own code raises is none of it."""


class NonceProvider(OpenIDConnectProvider):  # type: ignore[misc] # allauth is not typed
    """Asks the issuer to repeat a nonce in the token, and keeps it with the state of this sign-in."""

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the parts of the answer without claims that PostgreSQL does not store, such as one with a NUL."""
        return {name: _storable_claims(part) for name, part in data.items()}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Return what is asked for.

        The link's `scope` and `auth_params` are left out: whoever wrote the link could replace the nonce or the state.
        """
        nonce = secrets.token_urlsafe(32)
        asked: dict[str, Any] = super().get_redirect_from_request_kwargs(request)
        asked["scope"] = self.get_scope()
        asked["auth_params"] = {**self.get_auth_params(), NONCE: nonce}
        return {**asked, NONCE: nonce}


def _storable_claims(part: Any) -> Any:
    if not isinstance(part, dict):
        return part if is_storable(part) else None
    return {name: value for name, value in part.items() if is_storable(name) and is_storable(value)}


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc] # allauth is not typed
    """An account is found by who the issuer says it is, else by an email address that both sides have checked."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Provider:
        found: Provider = super().get_provider(request, provider, client_id)
        return NonceProvider(request, app=found.app) if isinstance(found, OpenIDConnectProvider) else found

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return (the account to link, its address), where the address was checked by the issuer and by us."""
        # First: all that follows in a sign-in reads whether an address is checked.
        check_addresses(sociallogin)
        for address in sociallogin.email_addresses:
            user = proven_owner(address.email) if address.verified else None
            if user is not None:
                # Without such a row allauth takes the account for a stranger's and removes its password.
                values = {"verified": True, "primary": True}
                EmailAddress.objects.get_or_create(user=user, email=address.email, defaults=values)
                return user, address.email
        return None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Follow the groups of a known user; answer with a page where a new one cannot have an account."""
        # Before anything of the answer is believed, also for known users.
        if not has_one_subject(sociallogin) or not has_our_nonce(sociallogin):
            refuse(request, "odd", status=502)
        if sociallogin.is_existing:
            join_groups(sociallogin)
            return
        # Somebody who is signed in links it to the account: that needs no address.
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        email = checked_address(sociallogin)
        if not email:
            refuse(request, "unchecked")
        if owners_of(email):
            refuse(request, "taken")
        release_address(email=email)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if settings.OIDC_MAKES_ACCOUNTS:
            return True
        invitation = invitation_in(request)
        is_invited = invitation is not None and invitation.email == checked_address(sociallogin)
        # As for passwords: an invitation from before signing up was closed opens nothing.
        return current("SIGNUP") == "open" or (is_invited and current("SIGNUP") == "invite")

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        # allauth copies the claims into the user as they come, and an issuer may send a list or a number.
        texts = {name: value if isinstance(value, str) else "" for name, value in data.items()}
        user: User = super().populate_user(request, sociallogin, texts)
        user.email = user.email.lower()
        user.name = " ".join(storable_text(texts.get("name", "")).split())[:150]
        return user

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Store a new user, who has no password here; an invitation for the address is used up."""
        invitation = invitation_in(request)
        with transaction.atomic():
            user: User = super().save_user(request, sociallogin, form)
            if invitation is not None and invitation.email == user.email:
                accept_invitation(request, user.email)
            join_groups(sociallogin)
        return user


def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send the browser to the issuer, or say that the issuer does not answer."""
    if provider_id != PROVIDER or not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponseBase = oidc_login(request, provider_id)
    except (RequestException, *ODD) as error:  # no answer, or none that describes an issuer
        if is_our_own(error):
            raise
        response = render(request, "account/no_single_sign_on.html", {"reason": "away"}, status=503)
    return response


def finish(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the browser back from the issuer, or say that its answer is not understood. Any other name is not even
    looked up."""
    if provider_id != PROVIDER or not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponseBase = oidc_callback(request, provider_id)
    except ODD as error:
        if is_our_own(error):
            raise
        log.exception("What the issuer answered is not understood.")
        response = render(request, "account/no_single_sign_on.html", {"reason": "odd"}, status=502)
    return response


def sign_up(request: HttpRequest) -> HttpResponseBase:
    """Answer 404 in the place of allauth's form, which takes any address, also one that nobody checked."""
    raise Http404


def is_our_own(error: Exception) -> bool:
    """Return whether our code failed and not allauth, of which the answer of the issuer is what it reads first."""
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__)]
    # Without the first, which is the function that caught it.
    called = [name for name in modules[1:] if name.startswith(("allauth.", "chatapp."))]
    return bool(called) and called[-1].startswith("chatapp.")


def has_one_subject(sociallogin: SocialLogin) -> bool:
    """Return whether the issuer says who it is, and both times the same.

    Without the claim, all such people would have one account. An answer about somebody else than the token must not be
    used (OpenID Connect Core 1.0, section 5.3.2).
    """
    said = [part.get("sub") for part in claims_of(sociallogin)]
    subject = said[0] if said else None
    return (
        isinstance(subject, str)
        and all(each == subject for each in said)
        and subject == storable_text(subject) != ""
    )


def claims_of(sociallogin: SocialLogin) -> list[dict[str, Any]]:
    """Return what the issuer says, asked and in its token."""
    claims = sociallogin.account.extra_data
    return [
        part for part in (claims.get("userinfo"), claims.get("id_token")) if part and isinstance(part, dict)
    ]


def has_our_nonce(sociallogin: SocialLogin) -> bool:
    """Return whether there is a token, made for the request of this browser: it repeats the nonce of that request.

    A token of another sign-in, whoever brings it, must not be used (OpenID Connect Core 1.0, section 3.1.3.7).
    """
    token = sociallogin.account.extra_data.get("id_token")
    asked, said = sociallogin.state.get(NONCE), token.get(NONCE) if isinstance(token, dict) else None
    if not isinstance(asked, str) or not isinstance(said, str):
        return False
    # As bytes: of texts it takes ASCII alone, and the issuer may send anything.
    return hmac.compare_digest(asked.encode(), said.encode("utf-8", "replace"))


def check_addresses(sociallogin: SocialLogin) -> None:
    """Take an address for checked where the issuer says so. Some say it in a string; "false" is true to Python."""
    # allauth has lowered them by now, and of all signs that are not ASCII the Kelvin sign alone becomes a letter of it:
    # who has such an address would get the account of another.
    is_changed = any("\N{KELVIN SIGN}" in str(part.get("email")) for part in claims_of(sociallogin))
    for address in sociallogin.email_addresses:
        said = str(address.verified).lower() == "true"
        address.verified = (said or settings.OIDC_TRUSTS_ADDRESSES) and not is_changed


def checked_address(sociallogin: SocialLogin) -> str:
    """Return the address that the issuer checked; empty where there is none."""
    return next((each.email.lower() for each in sociallogin.email_addresses if each.verified), "")


def join_groups(sociallogin: SocialLogin) -> None:
    """Put the user into the groups that the issuer names, where the claim is configured and there."""
    claim = settings.OIDC_GROUPS_CLAIM
    named = [part[claim] for part in claims_of(sociallogin) if claim in part]
    # A claim that is missing is no statement: who is in groups stays there.
    if named:
        # Some issuers write a single group as a text.
        names = named[0] if isinstance(named[0], list) else [named[0]]
        follow_groups(user=sociallogin.user, names=[str(name) for name in names])


def refuse(request: HttpRequest, reason: str, *, status: int = 403) -> None:
    page = render(request, "account/no_single_sign_on.html", {"reason": reason}, status=status)
    raise ImmediateHttpResponse(page)
