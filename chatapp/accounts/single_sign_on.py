"""Single sign-on with an OpenID Connect issuer: admission, the matching account, and group membership."""

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
from chatapp.accounts.actions import delete_unconfirmed_claims, set_groups_by_name
from chatapp.accounts.invitations.signing_up import accept_invitation, invitation_in
from chatapp.accounts.models import User
from chatapp.accounts.selectors import owners_of, proven_owner
from chatapp.operations.configuration.changeable_settings import current

log = logging.getLogger(__name__)

PROVIDER = "sso"
"""Our name for the issuer in URLs: /accounts/oidc/sso/login/."""
NONCE = "nonce"
ISSUER_ERRORS = (
    AttributeError,
    DataError,
    ImproperlyConfigured,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What allauth raises if an issuer's answer violates the standard: it checks few types, and asks the operator for a
longer column if a subject is too long. Errors of our own code are excluded by `is_our_own`."""


class NonceProvider(OpenIDConnectProvider):  # type: ignore[misc] # allauth is not typed
    """Asks the issuer to repeat a nonce in the token, and stores it in the state of this sign-in."""

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the parts of the answer without claims that PostgreSQL cannot store, e.g. those with a NUL."""
        return {name: _storable_claims(part) for name, part in data.items()}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Return the parameters of the request to the issuer.

        Ignore `scope` and `auth_params` of the link, with which its author could replace the nonce or the state.
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
    """Finds an account by the issuer's subject, or by an email address that both the issuer and we have verified."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Provider:
        found: Provider = super().get_provider(request, provider, client_id)
        return NonceProvider(request, app=found.app) if isinstance(found, OpenIDConnectProvider) else found

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """Return (the account to link, its address) if both the issuer and we have verified the address."""
        # Set this first, because all later steps of a sign-in read whether an address is verified.
        check_addresses(sociallogin)
        for address in sociallogin.email_addresses:
            user = proven_owner(address.email) if address.verified else None
            if user is not None:
                # Without this row allauth treats the account as a stranger's and removes its password.
                values = {"verified": True, "primary": True}
                EmailAddress.objects.get_or_create(user=user, email=address.email, defaults=values)
                return user, address.email
        return None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Update the groups of a known user; show an error page to a new one who cannot have an account."""
        # Check this before trusting anything in the answer, also for known users.
        if not has_one_subject(sociallogin) or not has_our_nonce(sociallogin):
            refuse(request, "odd", status=502)
        if sociallogin.is_existing:
            join_groups(sociallogin)
            return
        # A signed-in user links the issuer's account to an existing one, which needs no address.
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        email = checked_address(sociallogin)
        if not email:
            refuse(request, "unchecked")
        if owners_of(email):
            refuse(request, "taken")
        delete_unconfirmed_claims(email=email)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if settings.OIDC_MAKES_ACCOUNTS:
            return True
        invitation = invitation_in(request)
        is_invited = invitation is not None and invitation.email == checked_address(sociallogin)
        # As with passwords, an invitation is void once sign-up is closed.
        return current("SIGNUP") == "open" or (is_invited and current("SIGNUP") == "invite")

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        # allauth copies the claims into the user unchecked, and an issuer may send a list or a number.
        texts = {name: value if isinstance(value, str) else "" for name, value in data.items()}
        user: User = super().populate_user(request, sociallogin, texts)
        user.email = user.email.lower()
        user.name = " ".join(storable_text(texts.get("name", "")).split())[:150]
        return user

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Store a new user, who has no password here, and use up an invitation for the address."""
        invitation = invitation_in(request)
        with transaction.atomic():
            user: User = super().save_user(request, sociallogin, form)
            if invitation is not None and invitation.email == user.email:
                accept_invitation(request, user.email)
            join_groups(sociallogin)
        return user


def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Redirect the browser to the issuer, or show a page if the issuer does not respond."""
    if provider_id != PROVIDER or not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponseBase = oidc_login(request, provider_id)
    except (
        RequestException,
        *ISSUER_ERRORS,
    ) as error:  # no response, or one that does not describe an issuer
        if is_our_own(error):
            raise
        response = render(request, "account/no_single_sign_on.html", {"reason": "away"}, status=503)
    return response


def finish(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Handle the browser's return from the issuer; show a page if the answer is invalid. Raise 404 for any other name
    without looking it up."""
    if provider_id != PROVIDER or not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponseBase = oidc_callback(request, provider_id)
    except ISSUER_ERRORS as error:
        if is_our_own(error):
            raise
        log.exception("The issuer's response is invalid.")
        response = render(request, "account/no_single_sign_on.html", {"reason": "odd"}, status=502)
    return response


def sign_up(request: HttpRequest) -> HttpResponseBase:
    """Raise 404 instead of showing allauth's form, which accepts any address, even an unverified one."""
    raise Http404


def is_our_own(error: Exception) -> bool:
    """Return whether our code failed, not allauth, which parses the issuer's answer first."""
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__)]
    # Skip the first frame, which is the function that caught the error.
    called = [name for name in modules[1:] if name.startswith(("allauth.", "chatapp."))]
    return bool(called) and called[-1].startswith("chatapp.")


def has_one_subject(sociallogin: SocialLogin) -> bool:
    """Return whether the issuer sends a subject, and the same one each time.

    Without the claim, all users would share one account. User info about another subject than the token's must not be
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
    """Return the claims of the user info and of the ID token, as far as the issuer sent them."""
    claims = sociallogin.account.extra_data
    return [
        part for part in (claims.get("userinfo"), claims.get("id_token")) if part and isinstance(part, dict)
    ]


def has_our_nonce(sociallogin: SocialLogin) -> bool:
    """Return whether there is a token with the nonce of this browser's request.

    A token of another sign-in must not be used (OpenID Connect Core 1.0, section 3.1.3.7).
    """
    token = sociallogin.account.extra_data.get("id_token")
    asked, said = sociallogin.state.get(NONCE), token.get(NONCE) if isinstance(token, dict) else None
    if not isinstance(asked, str) or not isinstance(said, str):
        return False
    # Compare bytes: `compare_digest` accepts only ASCII strings, and the issuer may send anything.
    return hmac.compare_digest(asked.encode(), said.encode("utf-8", "replace"))


def check_addresses(sociallogin: SocialLogin) -> None:
    """Mark addresses as verified if the issuer says so. Some issuers send a string, and "false" is true in Python."""
    # allauth has lower-cased the addresses by now, which turns the Kelvin sign, as the only non-ASCII character, into
    # an ASCII letter: a user with such an address would get somebody else's account.
    is_changed = any("\N{KELVIN SIGN}" in str(part.get("email")) for part in claims_of(sociallogin))
    for address in sociallogin.email_addresses:
        said = str(address.verified).lower() == "true"
        address.verified = (said or settings.OIDC_TRUSTS_ADDRESSES) and not is_changed


def checked_address(sociallogin: SocialLogin) -> str:
    """Return the address that the issuer verified, or an empty string."""
    return next((each.email.lower() for each in sociallogin.email_addresses if each.verified), "")


def join_groups(sociallogin: SocialLogin) -> None:
    """Put the user into the groups that the issuer names, if the claim is configured and present."""
    claim = settings.OIDC_GROUPS_CLAIM
    named = [part[claim] for part in claims_of(sociallogin) if claim in part]
    # A missing claim says nothing, so the user's groups stay.
    if named:
        # Some issuers send a single group as a string.
        names = named[0] if isinstance(named[0], list) else [named[0]]
        set_groups_by_name(user=sociallogin.user, names=[str(name) for name in names])


def refuse(request: HttpRequest, reason: str, *, status: int = 403) -> None:
    page = render(request, "account/no_single_sign_on.html", {"reason": reason}, status=status)
    raise ImmediateHttpResponse(page)
