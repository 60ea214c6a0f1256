"""The API to create and delete webhooks, read their delivery logs, and send a delivery again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from ninja import Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.confirming import confirm_identity
from chatapp.accounts.idempotency import creates
from chatapp.accounts.schemas import Password
from chatapp.features.webhooks.actions import create_webhook, delete_webhook, send_again
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.features.webhooks.selectors import (
    accessible_delivery,
    accessible_webhook,
    deliveries_of,
    webhooks_of,
)
from chatapp.features.webhooks.sending import check_url
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.errors import Forbidden
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Moment, Page, Shape, answers
from memory.bounds import Cursor, PageSize

router = Router(tags=["webhooks"])

EventName = Literal["message.completed", "memory.written", "run.failed", "compact"]
EVENTS: tuple[EventName, ...] = ("message.completed", "memory.written", "run.failed", "compact")


class NewWebhook(Body):
    url: str = Field(min_length=1, max_length=2_000, description="On a host that the operator allows.")
    events: Annotated[list[EventName], Field(min_length=1, max_length=len(EVENTS))] | None = Field(
        None, description="The events that are sent to it; by default all that your scopes let you read."
    )

    password: Password | None = Field(
        None,
        description="Required in a browser where you signed in more than five minutes ago; not for tokens.",
    )


class WebhookShape(Shape):
    id: str
    url: str
    events: list[str]
    created_at: Moment


class CreatedWebhook(WebhookShape):
    secret: str | None = Field(
        description="Signs what is sent (standardwebhooks.com). It is shown only once: a repeat with the same "
        "`Idempotency-Key` has null."
    )


class DeliveryShape(Shape):
    id: str = Field(description="Also the header `webhook-id`: the same for each attempt.")
    type: str
    conversation_id: str
    seq: int
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    next_attempt_at: Moment | None
    status_code: int | None = Field(description="Of the last response.")
    error: str
    created_at: Moment
    delivered_at: Moment | None


def _shape(row: Webhook) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "url": row.url,
        "events": row.events,
        "created_at": iso_time(row.created_at),
    }


def _delivery_shape(row: WebhookDelivery) -> dict[str, Any]:
    is_pending = row.state == WebhookDelivery.State.PENDING
    return {
        "id": str(row.pk),
        "type": row.type,
        "conversation_id": str(row.conversation_id),
        "seq": row.seq,
        "state": row.state,
        "attempts": row.attempts,
        "next_attempt_at": iso_time(row.next_attempt_at) if is_pending else None,
        "status_code": row.status_code,
        "error": row.error,
        "created_at": iso_time(row.created_at),
        "delivered_at": iso_time(row.delivered_at),
    }


@router.get("/webhooks", auth=allow("chat", "read"), response=answers(ok=Page[WebhookShape]))
def list_webhooks(request: ApiRequest) -> Any:
    """List your webhooks, oldest first."""
    rows = webhooks_of(request.auth.user)
    return {"items": [_shape(row) for row in rows], "next_cursor": None}


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = accessible_webhook(request.auth.user, made)
    return Status(201, {**_shape(row), "secret": None})


@router.post("/webhooks", auth=allow("chat"), response=answers(409, created=CreatedWebhook))
@creates(_again, "/webhooks/{made}")
async def new_webhook(request: ApiRequest, new: NewWebhook) -> Any:
    """Create a webhook. The address receives a signed POST for each of these events in your conversations, up to eight
    times within two days until it responds with 2xx. `memory.written` needs the scope `memory`. A webhook created by a
    token ends with the token. In the browser, create it soon after signing in, or send the `password`."""
    # A stolen session must not create an address that receives everything for good.
    if request.auth.token_id is None:
        await confirm_identity(request, new.password)
    await check_url(new.url)
    return Status(201, await sync_to_async(_create)(request.auth, new))


def _create(caller: Caller, new: NewWebhook) -> dict[str, Any]:
    events = _readable(caller) if new.events is None else list[str](new.events)
    if not set(events) <= set(_readable(caller)):
        raise Forbidden("memory.written needs a token with the scope memory.", code="insufficient_scope")
    row, secret = create_webhook(
        user=caller.user, url=new.url, events=events, now=clock.now(), token_id=caller.token_id
    )
    return {**_shape(row), "secret": secret}


def _readable(caller: Caller) -> list[str]:
    return [name for name in EVENTS if name != "memory.written" or "memory" in caller.scopes]


@router.delete("/webhooks/{webhook_id}", auth=allow("chat"), response=answers(404))
def remove_webhook(request: ApiRequest, webhook_id: str) -> Any:
    """Delete a webhook with its delivery log. Pending deliveries are not sent."""
    delete_webhook(accessible_webhook(request.auth.user, webhook_id))
    return Status(204, None)


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    auth=allow("chat", "read"),
    response=answers(404, ok=Page[DeliveryShape]),
)
def list_deliveries(request: ApiRequest, webhook_id: str, cursor: Cursor = None, limit: PageSize = 30) -> Any:
    """List sent and pending deliveries, newest first. They are kept for 30 days."""
    return read_page(
        deliveries_of(request.auth.user, webhook_id), "created_at", cursor, limit, _delivery_shape
    )


@router.post(
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    auth=allow("chat"),
    response=answers(404, accepted=DeliveryShape),
)
def redeliver(request: ApiRequest, webhook_id: str, delivery_id: str) -> Any:
    """Send an event again, delivered or not, with its present content."""
    delivery = accessible_delivery(request.auth.user, webhook_id, delivery_id)
    return Status(202, _delivery_shape(send_again(delivery=delivery, now=clock.now())))
