"""What the API answers, for its description and as a check. `mapping` makes the values; more fields may be added."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chatapp.operations.http.schemas import Shape


class Agent(Shape):
    id: str
    name: str
    mode: str
    model: str | None
    greeting: str
    is_default: bool
    is_mine: bool = Field(False, description="Whether you made it for yourself.")
    uses_memory: bool = True
    shares_memory: bool = Field(
        False,
        description="Whether what is remembered of your chats with it is known to everybody who talks to it. Such chats"
        " know nothing private of you.",
    )
    tools: list[str] | None = Field(None, description="By name; null is the deployment's choice.")


class AgentDetails(Agent):
    """What an operator made for everybody shows its instructions to operators only."""

    temperature: float | None
    timeout_s: float | None
    mcp_servers: list[str] | None
    system_prompt: str | None
    context_policy: dict[str, Any] | None
    hooks: list[dict[str, Any]] | None
    notes: list[str] = Field([], description="What an import left out, because this deployment has it not.")
