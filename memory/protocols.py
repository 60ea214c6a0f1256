"""Interfaces that others may implement: a short-term memory, and a store for content too large for the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory.types import Message, ToolResultPart


class BaseMemory(Protocol):
    """A memory from which an agent reads its context. Read-only ones ignore `add_message` and `clear`."""

    def add_message(self, message: Message) -> None: ...

    def get_messages(self) -> tuple[Message, ...]: ...

    def clear(self) -> None: ...


class Offloader(Protocol):
    """Stores what left the context so that the agent can read it later. References are opaque and survive restarts.

    Called from threads, not from an event loop. Implementations raise `chatapp.operations.errors.NotFound` for a
    missing reference or conversation.
    """

    def offload_context(self, conversation_id: str, messages: Sequence[Message]) -> str:
        """Append messages to a conversation's record and return its reference. Some may have been appended before."""

    def offload_tool_result(self, conversation_id: str, result: ToolResultPart) -> str:
        """Store a whole tool result and return its reference. It may have been stored before."""

    def offload_image(self, conversation_id: str, content: bytes, tool_name: str = "") -> str:
        """Store an image that a tool returned, and return its reference."""

    def read(self, conversation_id: str, reference: str, *, offset: int = 0, limit: int = 20_000) -> str:
        """Return a page of a text, in characters. The reference `context` means what `offload_context` appended."""

    def discard(self, conversation_id: str, references: Sequence[str]) -> None:
        """Delete stored content that must not be read again."""
