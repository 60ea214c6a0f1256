"""Invitations, for operators: listed, made and withdrawn."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router, Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.invitations.actions import withdraw_invitation
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.invitations.selectors import all_invitations, invitation_of
from chatapp.accounts.invitations.services import invite
from chatapp.accounts.models import User
from chatapp.operations.clock import iso_time
from chatapp.operations.http.cursors import read_page
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
        description="To be handed over; null where it was mailed. It is shown this once: a repeat with the same "
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
async def list_invitations(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 30) -> Any:
    """List the invitations that nobody has used yet, newest first. For operators."""
    return await sync_to_async(_page)(cursor, limit)


def _page(cursor: str | None, limit: int) -> dict[str, Any]:
    return read_page(all_invitations(), "created_at", cursor, limit, _shape)


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = await sync_to_async(invitation_of)(made)
    return Status(201, {**_shape(row), "link": None})


@router.post("/admin/invitations", auth=allow("admin"), response=answers(409, created=CreatedInvitation))
@creates(_again, "/admin/invitations/{made}")
async def new_invitation(request: ApiRequest, new: NewInvitation) -> Any:
    """Invite one address to sign up once, within seven days. An earlier invitation of the address is void. For
    operators."""
    own_address = request.build_absolute_uri("/").rstrip("/")
    invited = await sync_to_async(invite)(
        email=new.email, invited_by=request.auth.user, own_address=own_address
    )
    return Status(201, {**_shape(invited.invitation), "link": invited.link})


@router.delete("/admin/invitations/{invitation_id}", auth=allow("admin"), response=answers(404))
async def remove_invitation(request: ApiRequest, invitation_id: str) -> Any:
    """Withdraw an invitation: nobody can sign up with its link any more. For operators."""
    await sync_to_async(_withdraw)(request.auth.user, invitation_id)
    return Status(204, None)


def _withdraw(actor: User, invitation_id: str) -> None:
    withdraw_invitation(invitation=invitation_of(invitation_id), actor=actor)
