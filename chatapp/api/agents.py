"""The agents to choose from."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router

from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.models import Agent
from chatapp.selectors.agents import accessible_agent, visible_agents

router = Router(tags=["account"])

DEFAULT_ID = "default"
DEFAULT = {
    "id": DEFAULT_ID,
    "name": "Default",
    "description": "Talks with the conversation's model, with the built-in instructions.",
    "mode": "react",
    "model": None,
    "greeting": "",
    "is_default": True,
}


@router.get("/agents", auth=allow("chat", "read"), response=shapes.answers(ok=shapes.Page[shapes.Agent]))
async def list_agents(request: ApiRequest) -> Any:
    """What you may choose, the default first; it stands for no agent at all."""
    return {"items": await sync_to_async(_agents)(), "next_cursor": None}


def _agents() -> list[dict[str, Any]]:
    return [DEFAULT, *(_agent(row) for row in visible_agents())]


def _agent(row: Agent) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "mode": row.mode,
        "model": row.model.name if row.model else None,
        "greeting": row.greeting,
        "is_default": False,
    }


def chosen_agent(name_or_id: str | None) -> Agent | None:
    """None for the default one. Raises NotFound."""
    return None if name_or_id in (None, "", DEFAULT_ID) else accessible_agent(str(name_or_id))
