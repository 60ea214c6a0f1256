"""Sign-up with an invitation. The session keeps the hash of its token, because the form drops the query string."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import SignupForm
from allauth.core import context
from django.http import HttpRequest

from chatapp.accounts.invitations.actions import use_invitation
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.invitations.selectors import valid_invitation
from chatapp.accounts.invitations.services import LINK_KEY
from chatapp.accounts.selectors import hash_token, owners_of
from chatapp.operations import clock


def invitation_in(request: HttpRequest) -> Invitation | None:
    """Return the valid invitation whose link the visitor opened, if any."""
    token = request.GET.get(LINK_KEY)
    token_hash = hash_token(token) if token else request.session.get(LINK_KEY)
    invitation = valid_invitation(token_hash, clock.now()) if token_hash else None
    # Do not store an invalid token, or each made-up one would create a session.
    if token and invitation is not None:
        request.session[LINK_KEY] = token_hash
    return invitation


def accept_invitation(request: HttpRequest, email: str) -> None:
    """Use up the invitation in the transaction that stores the user. Raise NotFound if it is not valid any more."""
    use_invitation(token_hash=request.session.pop(LINK_KEY, ""), email=email, now=clock.now())


class SignUpForm(SignupForm):  # type: ignore[misc] # allauth is not typed
    """Shows the invited address, read-only."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if invitation := invitation_in(context.request):
            self.fields["email"].initial = invitation.email
            # This is for display only; the adapter checks the submitted address.
            self.fields["email"].widget.attrs["readonly"] = True

    def validate_unique_email(self, value: str) -> str:
        """Refuse an address of an account. allauth would also refuse one that was entered but not confirmed."""
        if owners_of(value):
            raise get_adapter().validation_error("email_taken")
        self.account_already_exists = False
        return value
