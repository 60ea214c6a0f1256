"""Starts and stops what a web process runs beside the server."""

from __future__ import annotations

import asyncio
import logging

from chatapp.operations import telemetry
from chatapp.operations.database import in_database
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.detection import detect_in_background
from chatapp.realtime.hub import hub
from chatapp.runs import loops

log = logging.getLogger(__name__)


async def start() -> None:
    """Start on the event loop that will serve."""
    await in_database(ensure_first_model)()
    detect_in_background()
    await hub.start()
    await loops.start_loops()


async def stop() -> None:
    """Stop the hub, and send the last spans. Call it after `loops.drain`."""
    await hub.stop()
    await asyncio.to_thread(telemetry.flush)
