"""Ask questions in plan mode and wait for steps of the plan."""

from __future__ import annotations

import asyncio
from typing import Any

from chatapp.operations.database.threads import in_database
from chatapp.providers.models import Usage
from tests.context_engine.talking import Talk
from tests.servers.behaviour import ERRORS

BROKEN = ERRORS["wrong_key"]()


async def plan_events(talk: Talk) -> list[dict[str, str]]:
    """Return the states of all steps by id, for each event."""
    return [{step["id"]: step["state"] for step in event["steps"]} for event in await talk.events("plan")]


async def ask_planned(talk: Talk, content: str = "What of A and B?", **fields: Any) -> dict[str, Any]:
    answer = await talk.ask(content, **{"mode": "plan", **fields})
    return {**answer, "run": (await talk.program.get(f"runs/{answer['run_id']}")).json()}


async def usage_of(run_id: str) -> list[tuple[str, str]]:
    """Return (purpose, model) of each call in the ledger, oldest first."""
    rows = (
        Usage.objects.filter(run_id=run_id).order_by("created_at", "id").values_list("purpose", "model_name")
    )
    return await in_database(list)(rows)


async def until_step(talk: Talk, step: str, state: str) -> None:
    async with asyncio.timeout(120):
        while not any(states.get(step) == state for states in await plan_events(talk)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
