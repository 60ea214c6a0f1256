"""Answers with tools: scripted tool calls, and waiting until a call has a certain state."""

from __future__ import annotations

from typing import Any

from chatapp.conversations.models import Message
from tests.api.program import Program
from tests.api.running import new_conversation, sent_events
from tests.servers.behaviour import Behaviour


def asks_for(name: str, text: str = "", **arguments: Any) -> Behaviour:
    return Behaviour(text=text or None, tokens=0, tool_calls=({"name": name, "arguments": arguments},))


async def stored(conversation_id: str) -> list[tuple[int, str, str]]:
    rows = Message.objects.filter(conversation_id=conversation_id).order_by("position")
    return [(row.position, row.role, row.kind) async for row in rows]


async def start(program: Program, text: str = "Do it.") -> tuple[str, str]:
    """Send a message without waiting for the answer. Return `(conversation, run)`."""
    conversation = await new_conversation(program)
    answer = await program.post(
        f"conversations/{conversation}/messages", headers={"Prefer": "respond-async"}, content=text
    )
    return conversation, str(answer.json()["run_id"])


async def wait_for_tool(program: Program, conversation: str, state: str) -> dict[str, Any]:
    """Wait for the first call in this state and return its event."""
    answer = await program.get(f"conversations/{conversation}/events", after_seq=0)
    async for event in sent_events(answer):
        if event.type == "tool" and event.data["state"] == state:
            await answer.hang_up()
            return event.data
    raise AssertionError(f"no call was ever {state}")
