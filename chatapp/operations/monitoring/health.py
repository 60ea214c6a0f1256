"""Endpoints for liveness, readiness and metrics, for operators and their tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from celery import current_app
from channels.layers import get_channel_layer
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from chatapp.accounts.selectors import find_token, has_admin
from chatapp.operations.configuration.environment import LOOPBACK_HOSTS
from chatapp.operations.database.outages import is_disk_full
from chatapp.operations.database.threads import in_database
from chatapp.operations.monitoring.exposition import exposed
from chatapp.operations.workers.process_reports import KINDS, Kind, living

CHECK_TIMEOUT_S = 5.0
PROBE_BYTES = 64 * 2**10


@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    """Respond without the database and Redis, because an outage of theirs must not restart this process."""
    return JsonResponse({"status": "ok"})


@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    """Respond with 503 if a part is unavailable that every request needs. Missing workers and beats are only reported,
    because answers work without them and this process must keep its requests."""
    needed = await asyncio.gather(*map(_problem, NEEDED.values()))
    others = await asyncio.gather(*map(_problem, (partial(_check_living, kind) for kind in KINDS)))
    problems = dict(zip((*NEEDED, *KINDS), (*needed, *others), strict=True))
    status = "unavailable" if any(needed) else "degraded" if any(others) else "ok"
    body = {"status": status, "checks": {name: problem or "ok" for name, problem in problems.items()}}
    return JsonResponse(body, status=503 if any(needed) else 200)


async def _problem(check: Callable[[], Awaitable[Any]]) -> str | None:
    """Return the problem; None if the check passes. Show only an error's class: its text may contain passwords."""
    try:
        await asyncio.wait_for(check(), CHECK_TIMEOUT_S)
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT_S:.0f} s"
    except NoLivingProcess:
        return "missing"
    except Exception as error:
        return "the disk is full" if is_disk_full(error) else f"failed ({type(error).__name__})"
    return None


async def _check_layer() -> None:
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send("readiness", {"type": "nobody.listens"})


def _write_probe() -> None:
    """Write and remove a file in the data folder. Raise OSError if that fails."""
    probe = Path(settings.DATA_DIR) / f".readiness-{os.getpid()}"
    try:
        # Write content, because a full disk may still accept an empty file.
        probe.write_bytes(b"\0" * PROBE_BYTES)
    finally:
        probe.unlink(missing_ok=True)


def _connect_to_broker() -> None:
    with current_app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=int(CHECK_TIMEOUT_S))


class NoLivingProcess(Exception):
    """No worker, or no beat, has reported within LEASE_S."""


async def _check_living(kind: Kind) -> None:
    if not (await sync_to_async(living, thread_sensitive=False)())[kind]:
        raise NoLivingProcess


NEEDED: dict[str, Callable[[], Awaitable[Any]]] = {
    "database": in_database(has_admin),  # reads a table, so that a database without tables is not ready
    # Not in the thread that all checks of a request would share, where a check that hangs would block the others.
    "storage": sync_to_async(_write_probe, thread_sensitive=False),
    "layer": _check_layer,
    "broker": sync_to_async(_connect_to_broker, thread_sensitive=False),
}


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Serve operators' sessions, tokens with the scope admin and, if there is no proxy, scrapers on this machine."""
    if not (_is_local(request) or _is_operator(request)):
        sentence = "Metrics are for operators: sign in as one, or send a token with the scope admin."
        return JsonResponse({"error": {"code": "forbidden", "message": sentence}}, status=403)
    return HttpResponse(exposed(), content_type=CONTENT_TYPE_LATEST)


def _is_local(request: HttpRequest) -> bool:
    """Return whether the request comes from a program on this machine, not from a proxy for somebody else."""
    if settings.IS_BEHIND_PROXY or getattr(request, "scope", {}).get("is_forwarded"):
        return False
    try:
        is_loopback = ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
    host = request.get_host()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    # Check the name, too: a local browser may send requests of a foreign page whose name resolves here (DNS rebinding).
    return is_loopback and name in LOOPBACK_HOSTS


def _is_operator(request: HttpRequest) -> bool:
    scheme, _, raw = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        token = find_token(raw.strip())
        return token is not None and "admin" in token.scopes and token.user.is_staff
    return bool(request.user.is_authenticated and request.user.is_active and request.user.is_staff)
