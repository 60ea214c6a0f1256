"""Interfaces that others may implement: a short-term memory, and a store for what is too large for the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory.types import Message, ToolResultPart


class BaseMemory(Protocol):
    """A memory an agent reads its context from. Read-only ones ignore `add_message` and `clear`."""

    def add_message(self, message: Message) -> None: ...

    def get_messages(self) -> tuple[Message, ...]: ...

    def clear(self) -> None: ...


class Offloader(Protocol):
    """Keeps what left the context where the agent can read it later. References are opaque and outlive restarts.

    Called from threads, not from an event loop. `chatapp.operations.errors.NotFound` is raised for a reference, or a
    conversation, that is not there.
    """

    def offload_context(self, conversation_id: str, messages: Sequence[Message]) -> str:
        """Append messages to the record of a conversation. Return its reference. May get some of them again."""

    def offload_tool_result(self, conversation_id: str, result: ToolResultPart) -> str:
        """Keep a whole tool result. Return its reference. May get the same result again."""

    def offload_image(self, conversation_id: str, content: bytes, tool_name: str = "") -> str:
        """Keep an image that a tool returned. Return its reference."""

    def read(self, conversation_id: str, reference: str, *, offset: int = 0, limit: int = 20_000) -> str:
        """Return a page of a text, in characters. The reference `context` is what `offload_context` appended."""

    def discard(self, conversation_id: str, references: Sequence[str]) -> None:
        """Delete what must not be read again."""
