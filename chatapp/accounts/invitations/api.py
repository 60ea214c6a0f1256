"""API operations on invitations, for operators: list, create and withdraw."""

from __future__ import annotations

from typing import Any

from ninja import Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.invitations.actions import withdraw_invitation
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.invitations.selectors import all_invitations, invitation_of
from chatapp.accounts.invitations.services import invite
from chatapp.operations.clock import iso_time
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Moment, Page, Shape, answers
from memory.bounds import Cursor, PageSize

router = Router(tags=["invitations"])


class NewInvitation(Body):
    email: str = Field(min_length=3, max_length=254, description="Only this address can use it.")


class InvitationShape(Shape):
    id: str
    email: str
    created_at: Moment
    expires_at: Moment


class CreatedInvitation(InvitationShape):
    link: str | None = Field(
        description="The link to hand over; null if it was mailed. It is shown only once: a repeat with the same "
        "`Idempotency-Key` has null."
    )


def _shape(row: Invitation) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "email": row.email,
        "created_at": iso_time(row.created_at),
        "expires_at": iso_time(row.expires_at),
    }


@router.get("/admin/invitations", auth=allow("admin"), response=answers(ok=Page[InvitationShape]))
def list_invitations(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 30) -> Any:
    """List the invitations that nobody has used yet, newest first. For operators."""
    return read_page(all_invitations(), "created_at", cursor, limit, _shape)


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, {**_shape(invitation_of(made)), "link": None})


@router.post("/admin/invitations", auth=allow("admin"), response=answers(409, created=CreatedInvitation))
@creates(_again, "/admin/invitations/{made}")
def new_invitation(request: ApiRequest, new: NewInvitation) -> Any:
    """Invite one address to sign up once, within seven days. An earlier invitation of the address becomes invalid. For
    operators."""
    own_address = request.build_absolute_uri("/").rstrip("/")
    invited = invite(email=new.email, invited_by=request.auth.user, own_address=own_address)
    return Status(201, {**_shape(invited.invitation), "link": invited.link})


@router.delete("/admin/invitations/{invitation_id}", auth=allow("admin"), response=answers(404))
def remove_invitation(request: ApiRequest, invitation_id: str) -> Any:
    """Withdraw an invitation: its link becomes invalid. For operators."""
    withdraw_invitation(invitation=invitation_of(invitation_id), actor=request.auth.user)
    return Status(204, None)
