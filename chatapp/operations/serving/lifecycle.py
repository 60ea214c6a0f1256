"""Starts and stops what a web process runs besides the server."""

from __future__ import annotations

import asyncio
import logging

from chatapp.operations import telemetry
from chatapp.operations.database.threads import in_database
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.detection import detect_in_background
from chatapp.realtime.hub import hub
from chatapp.runs import loops

log = logging.getLogger(__name__)


async def start() -> None:
    """Ensure a first model, and start detection, the hub and the loops. Call this on the event loop that will serve."""
    await in_database(ensure_first_model)()
    detect_in_background()
    await hub.start()
    await loops.start_loops()


async def stop() -> None:
    """Stop the hub and send the last spans. Call this after `loops.drain`."""
    await hub.stop()
    await asyncio.to_thread(telemetry.flush)
