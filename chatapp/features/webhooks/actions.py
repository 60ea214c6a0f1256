"""Writes webhooks and the states of their deliveries."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When

from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.features.webhooks.selectors import NO_ANSWER, deliveries_to_send, due_deliveries
from chatapp.operations.encryption import encrypt
from chatapp.operations.errors import Conflict
from chatapp.operations.jobs import wake_worker

MAX_WEBHOOKS = 20
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"
SLOW = timedelta(seconds=5)
RESTS_FOR = 2
"""Times as long as its slow attempt took: so it holds a worker for a third of the time at most."""
KEEP = timedelta(days=30)
ROWS_AT_ONCE = 500


def create_webhook(
    *, user: User, url: str, events: Sequence[str], now: datetime, token_id: UUID | None = None
) -> tuple[Webhook, str]:
    """Store a webhook and return (it, its secret); one that a token makes ends with it. Raise Conflict for one too
    many."""
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    with transaction.atomic():
        # Of two requests at once, each would count without the other.
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
        record_made(row.pk)
    return row, secret


def delete_webhook(webhook: Webhook) -> None:
    """Delete a webhook with its log. A delivery that is being sent at this moment may still arrive."""
    webhook.delete()


def claim_delivery(*, delivery_id: UUID, now: datetime) -> bool:
    """Count an attempt and keep other workers away; return False where it is not due, or a worker has it or another one
    of its user: whose addresses are slow holds up one worker and not all of them."""
    pending = WebhookDelivery.objects.filter(state=WebhookDelivery.State.PENDING)
    with transaction.atomic():
        # Of two claims at once, each would look without the other. In the order in which events lock them.
        webhooks = Webhook.objects.select_for_update(of=("self",), no_key=True)
        ids = [row.pk for row in webhooks.filter(user__webhooks__deliveries=delivery_id).order_by("pk")]
        is_due = WebhookDelivery.is_due(now)
        # Without an error, the outcome of the latest attempt is not known yet.
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
    """Store how an attempt ended, and when the next one is due. `error` is empty where the address took it.

    An address rests that did not answer, or not before SLOW, whatever it answered. Where it took nothing, the attempt
    counts for all that is due there. Where it took the delivery, the others wait RESTS_FOR times as long as the attempt
    took, and no attempt is counted. One that takes a delivery in time gets what waits for the end of its rest. Then a
    worker is woken for what is due next of the user's.
    """
    is_slow = took >= SLOW
    if error and is_slow and not error.startswith(NO_ANSWER):
        error = f"{NO_ANSWER} within {SLOW.seconds} s. {error}"
    rests_until = now + RESTS_FOR * took if is_slow else now
    values: dict[str, object] = {"status_code": status_code, "error": error[:200]}
    if not error:
        values |= {"state": WebhookDelivery.State.DELIVERED, "delivered_at": now}
        values["next_attempt_at"] = rests_until  # of the address: see `end_of_rest`
    # One attempt at once, and one after each pause.
    elif delivery.attempts > len(WebhookDelivery.PAUSES):
        values["state"] = WebhookDelivery.State.FAILED
    else:
        values["next_attempt_at"] = now + WebhookDelivery.PAUSES[delivery.attempts - 1]
    # An attempt that ends after its lease, or after somebody asked for new ones, must not undo what another one did.
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
    """End a delivery that no further attempt can bring, and wake a worker for what is due next of the user's."""
    held = WebhookDelivery.objects.filter(
        pk=delivery.pk, state=WebhookDelivery.State.PENDING, attempts=delivery.attempts
    )
    with transaction.atomic():
        held.update(state=WebhookDelivery.State.FAILED, status_code=None, error=error)
        _wake_for_next(delivery, now)


def release_delivery(*, delivery: WebhookDelivery, now: datetime) -> None:
    """Take back a claim that came to no attempt, and wake a worker for what is due next of the user's. `delivery` is as
    it was before the claim."""
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
    """Count the attempt for everything else that is due at a silent address: each would wait for its time-out."""
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
    """Let what waits at a slow address, or for its answer, wait until then."""
    # Of what has no error, another worker is at the attempt or lost it: that is for the lease.
    would_be_tried = Q(Q(attempts=0) | ~Q(error=""), next_attempt_at__lt=until)
    waiting = WebhookDelivery.objects.filter(
        would_be_tried | Q(error__startswith=NO_ANSWER),
        webhook=webhook_id,
        state=WebhookDelivery.State.PENDING,
    )
    WebhookDelivery.objects.filter(pk__in=_locked(waiting)).update(next_attempt_at=until)


def _end_rest(webhook_id: UUID, now: datetime) -> None:
    """Make due what was put off because the address did not answer, or was made while it rested."""
    put_off = Q(error__startswith=NO_ANSWER) | Q(attempts=0)
    waiting = WebhookDelivery.objects.filter(
        put_off, webhook=webhook_id, state=WebhookDelivery.State.PENDING, next_attempt_at__gt=now
    )
    WebhookDelivery.objects.filter(pk__in=_locked(waiting)).update(next_attempt_at=now)


def _locked(rows: QuerySet[WebhookDelivery]) -> list[UUID]:
    """Lock some of the rows and return their keys."""
    # Those that somebody deletes meanwhile are passed over: waiting for them could be waiting in a circle.
    locked = rows.select_for_update(of=("self",), skip_locked=True).order_by("next_attempt_at", "pk")
    return list(locked.values_list("pk", flat=True)[:ROWS_AT_ONCE])


def send_again(*, delivery: WebhookDelivery, now: datetime) -> WebhookDelivery:
    """Put a delivery into the outbox again, whether or not it was delivered, and return it."""
    with transaction.atomic():
        delivery.state = WebhookDelivery.State.PENDING
        delivery.attempts = 0
        delivery.next_attempt_at = now
        delivery.save(update_fields=["state", "attempts", "next_attempt_at"])
        wake_worker("chatapp.features.webhooks.tasks.deliver", str(delivery.pk))
    return delivery


def delete_ended_webhooks(*, now: datetime) -> None:
    """Delete the webhooks of tokens that have expired."""
    Webhook.objects.filter(token__expires_at__lte=now).delete()


def delete_old_deliveries(*, now: datetime) -> None:
    """Delete some of what is done and older than KEEP."""
    done = WebhookDelivery.objects.exclude(state=WebhookDelivery.State.PENDING)
    old = done.filter(created_at__lt=now - KEEP).order_by("created_at", "pk")
    ids = list(old.values_list("pk", flat=True)[:ROWS_AT_ONCE])
    WebhookDelivery.objects.filter(pk__in=ids).delete()
