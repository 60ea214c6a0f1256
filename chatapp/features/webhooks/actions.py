"""Writes webhooks and the states of their deliveries."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.features.webhooks.selectors import NO_ANSWER, deliveries_to_send, due_deliveries
from chatapp.operations.encryption import encrypt
from chatapp.operations.errors import Conflict
from chatapp.operations.workers.jobs import wake_worker

MAX_WEBHOOKS = 20
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"
SLOW = timedelta(seconds=5)
RESTS_FOR = 2
"""Multiple of the duration of a slow attempt, so that an address uses a worker for a third of the time at most."""
KEEP = timedelta(days=30)
ROWS_AT_ONCE = 500


def create_webhook(
    *, user: User, url: str, events: Sequence[str], now: datetime, token_id: UUID | None = None
) -> tuple[Webhook, str]:
    """Store a webhook and return (webhook, secret). A webhook created by a token ends with it. Raise Conflict for too
    many."""
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    with transaction.atomic():
        # Lock the user, or two concurrent requests would not count each other.
        User.objects.select_for_update().get(pk=user.pk)
        if Webhook.objects.filter(user=user).count() >= MAX_WEBHOOKS:
            raise Conflict(f"You have {MAX_WEBHOOKS} webhooks already; delete one first.", code="too_many")
        row = Webhook.objects.create(
            user=user,
            token_id=token_id,
            url=url,
            events=sorted(set(events)),
            secret_encrypted=encrypt(secret),
            created_at=now,
        )
        record_created_id(row.pk)
    return row, secret


def delete_webhook(webhook: Webhook) -> None:
    """Delete a webhook with its log. A delivery that is being sent may still arrive."""
    webhook.delete()


def claim_delivery(*, delivery_id: UUID, now: datetime) -> bool:
    """Claim a delivery and count the attempt. Return False if it is not due, or if a worker has a delivery of the same
    user, so that a user's slow addresses block only one worker."""
    pending = WebhookDelivery.objects.filter(state=WebhookDelivery.State.PENDING)
    with transaction.atomic():
        # Lock the rows, or two concurrent claims would miss each other. Same lock order as for events.
        webhooks = Webhook.objects.select_for_update(of=("self",), no_key=True)
        ids = [row.pk for row in webhooks.filter(user__webhooks__deliveries=delivery_id).order_by("pk")]
        is_due = WebhookDelivery.is_due(now)
        # While the error is empty, the outcome of the latest attempt is unknown.
        if pending.filter(webhook__in=ids, attempts__gt=0, error="").exclude(is_due).exists():
            return False
        until = now + WebhookDelivery.LEASE
        claimed = pending.filter(is_due, pk=delivery_id)
        return bool(claimed.update(attempts=F("attempts") + 1, next_attempt_at=until, error=""))


def record_attempt(
    *,
    delivery: WebhookDelivery,
    status_code: int | None,
    error: str,
    now: datetime,
    took: timedelta = timedelta(0),
) -> None:
    """Store the outcome of an attempt and when the next is due. `error` is empty if the address accepted it.

    An address rests if it did not respond within SLOW. If that attempt failed, it counts for all due deliveries of the
    address. If it succeeded, the others wait RESTS_FOR times its duration, without a counted attempt. A success in time
    ends the rest. Finally, wake a worker for the user's next due delivery.
    """
    is_slow = took >= SLOW
    if error and is_slow and not error.startswith(NO_ANSWER):
        error = f"{NO_ANSWER} within {SLOW.seconds} s. {error}"
    rests_until = now + RESTS_FOR * took if is_slow else now
    values: dict[str, object] = {"status_code": status_code, "error": error[:200]}
    if not error:
        values |= {"state": WebhookDelivery.State.DELIVERED, "delivered_at": now}
        values["next_attempt_at"] = rests_until  # the rest of the address: see `end_of_rest`
    # There is one attempt at first, and one after each pause.
    elif delivery.attempts > len(WebhookDelivery.PAUSES):
        values["state"] = WebhookDelivery.State.FAILED
    else:
        values["next_attempt_at"] = now + WebhookDelivery.PAUSES[delivery.attempts - 1]
    # A failure reported after the lease, or after `send_again`, must not overwrite the result of a newer attempt.
    pending = WebhookDelivery.objects.filter(pk=delivery.pk, state=WebhookDelivery.State.PENDING)
    with transaction.atomic():
        (pending.filter(attempts=delivery.attempts) if error else pending).update(**values)
        if not error and is_slow:
            _put_off(delivery.webhook_id, rests_until)
        elif not error:
            _end_rest(delivery.webhook_id, now)
        elif error.startswith(NO_ANSWER):
            _count_for_all_due(delivery.webhook_id, error, now)
        _wake_for_next(delivery, now)


def give_up_delivery(*, delivery: WebhookDelivery, error: str, now: datetime) -> None:
    """Fail a delivery that no further attempt can send, and wake a worker for the user's next due delivery."""
    held = WebhookDelivery.objects.filter(
        pk=delivery.pk, state=WebhookDelivery.State.PENDING, attempts=delivery.attempts
    )
    with transaction.atomic():
        held.update(state=WebhookDelivery.State.FAILED, status_code=None, error=error)
        _wake_for_next(delivery, now)


def release_delivery(*, delivery: WebhookDelivery, now: datetime) -> None:
    """Undo a claim that led to no attempt, and wake a worker for the user's next due delivery. `delivery` is in its
    state before the claim."""
    claimed = WebhookDelivery.objects.filter(
        pk=delivery.pk, state=WebhookDelivery.State.PENDING, attempts=delivery.attempts + 1
    )
    with transaction.atomic():
        claimed.update(attempts=delivery.attempts, error=delivery.error, next_attempt_at=now)
        _wake_for_next(delivery, now)


def _wake_for_next(delivery: WebhookDelivery, now: datetime) -> None:
    for next_id in due_deliveries(now, delivery.webhook.user_id):
        wake_worker("chatapp.features.webhooks.tasks.deliver", str(next_id))


def _count_for_all_due(webhook_id: UUID, error: str, now: datetime) -> None:
    """Count the attempt for all due deliveries of an unresponsive address: each would wait for its own timeout."""
    due = deliveries_to_send().filter(WebhookDelivery.is_due(now), webhook=webhook_id)
    WebhookDelivery.objects.filter(pk__in=_locked(due)).update(
        attempts=F("attempts") + 1,
        status_code=None,
        error=error[:200],
        state=Case(
            When(attempts__gte=len(WebhookDelivery.PAUSES), then=Value(WebhookDelivery.State.FAILED)),
            default=F("state"),
        ),
        next_attempt_at=Case(
            *(
                When(attempts=count, then=Value(now + pause))
                for count, pause in enumerate(WebhookDelivery.PAUSES)
            ),
            default=F("next_attempt_at"),
        ),
    )


def _put_off(webhook_id: UUID, until: datetime) -> None:
    """Move deliveries to `until` that would be tried earlier, or that wait for the address to respond."""
    # A delivery with attempts but no error is left to its lease: another worker has it, or lost it.
    would_be_tried = Q(Q(attempts=0) | ~Q(error=""), next_attempt_at__lt=until)
    waiting = WebhookDelivery.objects.filter(
        would_be_tried | Q(error__startswith=NO_ANSWER),
        webhook=webhook_id,
        state=WebhookDelivery.State.PENDING,
    )
    WebhookDelivery.objects.filter(pk__in=_locked(waiting)).update(next_attempt_at=until)


def _end_rest(webhook_id: UUID, now: datetime) -> None:
    """Make deliveries due that were postponed because the address did not respond, or created while it rested."""
    put_off = Q(error__startswith=NO_ANSWER) | Q(attempts=0)
    waiting = WebhookDelivery.objects.filter(
        put_off, webhook=webhook_id, state=WebhookDelivery.State.PENDING, next_attempt_at__gt=now
    )
    WebhookDelivery.objects.filter(pk__in=_locked(waiting)).update(next_attempt_at=now)


def _locked(rows: QuerySet[WebhookDelivery]) -> list[UUID]:
    """Lock up to ROWS_AT_ONCE rows and return their keys."""
    # Skip rows that are being deleted: waiting for them could deadlock.
    locked = rows.select_for_update(of=("self",), skip_locked=True).order_by("next_attempt_at", "pk")
    return list(locked.values_list("pk", flat=True)[:ROWS_AT_ONCE])


def send_again(*, delivery: WebhookDelivery, now: datetime) -> WebhookDelivery:
    """Put a delivery into the outbox again, delivered or not, and return it."""
    with transaction.atomic():
        delivery.state = WebhookDelivery.State.PENDING
        delivery.attempts = 0
        delivery.next_attempt_at = now
        delivery.save(update_fields=["state", "attempts", "next_attempt_at"])
        wake_worker("chatapp.features.webhooks.tasks.deliver", str(delivery.pk))
    return delivery


def delete_ended_webhooks(*, now: datetime) -> None:
    """Delete webhooks whose token has expired."""
    Webhook.objects.filter(token__expires_at__lte=now).delete()


def delete_old_deliveries(*, now: datetime) -> None:
    """Delete up to ROWS_AT_ONCE finished deliveries older than KEEP."""
    done = WebhookDelivery.objects.exclude(state=WebhookDelivery.State.PENDING)
    old = done.filter(created_at__lt=now - KEEP).order_by("created_at", "pk")
    ids = list(old.values_list("pk", flat=True)[:ROWS_AT_ONCE])
    WebhookDelivery.objects.filter(pk__in=ids).delete()
