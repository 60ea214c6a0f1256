"""What tools there are."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router
from pydantic import Field

from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.toolbox import ToolFacts, list_tools

router = Router(tags=["tools"])


class Traits(shapes.Shape):
    timeout_s: float
    is_idempotent: bool = Field(description="Whether it may be called again after a crash.")
    needs_consent: bool = Field(description="Whether you are asked before each call.")
    rights: list[str] = Field(description="What it reaches: memory, conversation, files, web, server.")


class Tool(shapes.Shape):
    name: str
    description: str
    parameters: dict[str, Any] = Field(description="A JSON schema.")
    traits: Traits
    server: str | None = Field(description="The MCP server it belongs to; null for a built-in one.")
    enabled: bool = Field(description="Whether this deployment lets it be used.")
    enabled_by_default: bool = Field(description="Whether a conversation without an agent has it.")


@router.get("/tools", auth=allow("chat", "read"), response=shapes.answers(ok=shapes.Page[Tool]))
async def tools(request: ApiRequest) -> Any:
    """The tools an agent of yours may have. Those an operator gives to single agents only are not among them."""
    facts = await sync_to_async(list_tools)()
    return {"items": [_tool(each) for each in facts], "next_cursor": None}


def _tool(facts: ToolFacts) -> dict[str, Any]:
    spec, traits = facts.tool.spec, facts.tool.traits
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "traits": {
            "timeout_s": traits.timeout_s,
            "is_idempotent": traits.is_idempotent,
            "needs_consent": traits.needs_consent,
            "rights": sorted(traits.rights),
        },
        "server": facts.server,
        "enabled": facts.is_on,
        "enabled_by_default": facts.is_on and facts.is_default,
    }
