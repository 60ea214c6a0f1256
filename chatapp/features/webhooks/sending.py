"""Sends one delivery: signed according to Standard Webhooks, to allowed addresses only, without following redirects."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from datetime import datetime, timedelta
from uuid import UUID

import httpx2
from django.conf import settings

from agents.guarded_http import (
    ForbiddenHost,
    GuardedTransport,
    HostRules,
    check_known_addresses,
    host_and_port,
)
from chatapp.features.webhooks.actions import (
    SECRET_PREFIX,
    claim_delivery,
    give_up_delivery,
    record_attempt,
    release_delivery,
)
from chatapp.features.webhooks.models import WebhookDelivery
from chatapp.features.webhooks.selectors import NO_ANSWER, deliveries_to_send, event_of
from chatapp.operations import clock
from chatapp.operations.encryption import SecretUnreadable, decrypt
from chatapp.operations.errors import InvalidInput

TIMEOUT_S = 15.0
CONNECT_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024
GONE = "The event was deleted before it could be sent."


def host_rules() -> HostRules:
    return HostRules(tuple(settings.WEBHOOK_HOSTS), tuple(settings.WEBHOOK_OWN_HOSTS))


async def check_url(url: str) -> None:
    """Raise InvalidInput if the address is not allowed, as far as is known now: each delivery checks again."""
    rules = host_rules()
    try:
        parsed = httpx2.URL(url)
        rules.check_name(*host_and_port(parsed))
        await check_known_addresses(rules, parsed)
    except (ForbiddenHost, httpx2.InvalidURL, ValueError, UnicodeError) as error:
        sentence = str(error) if isinstance(error, ForbiddenHost) else "This is not a valid web address."
        raise InvalidInput.in_field("url", sentence, sentence) from None


def deliver(delivery_id: UUID) -> None:
    """Try a delivery once, if it is due and no other worker has it."""
    now = clock.now()
    rows = deliveries_to_send().filter(pk=delivery_id)
    # Check this first: deliveries of inactive users or trashed conversations must not use up their attempts.
    waiting = rows.first()
    if waiting is None or not claim_delivery(delivery_id=delivery_id, now=now):
        return
    # Read it again, with the attempt that was counted.
    delivery = rows.first()
    if delivery is None:
        release_delivery(delivery=waiting, now=now)
        return
    event = event_of(delivery)
    if event is None:
        give_up_delivery(delivery=delivery, error=GONE, now=now)
        return
    payload = {"type": delivery.type, "timestamp": delivery.created_at.isoformat(), "data": event}
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    began = time.monotonic()
    status_code, error = asyncio.run(_post(delivery, body, now))
    took = timedelta(seconds=time.monotonic() - began)
    record_attempt(delivery=delivery, status_code=status_code, error=error, now=clock.now(), took=took)


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return `v1,<base64 of HMAC-SHA256>` of `id.timestamp.body`."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


async def _post(delivery: WebhookDelivery, body: bytes, now: datetime) -> tuple[int | None, str]:
    """Return (status of the response, error). The error is empty if it succeeded."""
    try:
        secret = decrypt(delivery.webhook.secret_encrypted)
    except SecretUnreadable:
        return None, "The secret cannot be decrypted. Create the webhook again."
    message_id, timestamp = str(delivery.pk), int(now.timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Palimpsest",
        # The transport refuses compressed responses, because it could not bound their size.
        "Accept-Encoding": "identity",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, message_id, timestamp, body),
    }
    timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    transport = GuardedTransport(host_rules(), max_bytes=MAX_ANSWER_BYTES)
    try:
        async with (
            # The client's timeout is for each read: a slowly trickling response would never reach it.
            asyncio.timeout(TIMEOUT_S),
            httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False) as client,
            client.stream("POST", delivery.webhook.url, content=body, headers=headers) as response,
        ):
            # Only the status matters, so the body is not read.
            status = response.status_code
    except ForbiddenHost as refusal:
        return None, str(refusal)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError) as error:
        return None, f"{NO_ANSWER} ({type(error).__name__})."
    return status, "" if 200 <= status < 300 else f"The address answered {status}."
