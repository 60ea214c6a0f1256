"""What a web process does when it starts and before it ends."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from chatapp import runner
from chatapp.actions.model_configs import ensure_first_model
from chatapp.database import in_database
from chatapp.live import hub
from chatapp.model_facts import load_prices
from chatapp.ollama import offer_ollama_in_background

log = logging.getLogger(__name__)


async def start() -> None:
    """On the event loop that will serve."""
    asyncio.get_running_loop().run_in_executor(None, load_prices)
    await in_database(ensure_first_model)()
    if settings.OLLAMA_URL:
        offer_ollama_in_background(settings.OLLAMA_URL)
    await hub.start()
    await runner.start_loops()


async def stop() -> None:
    """After `runner.drain`."""
    await hub.stop()
