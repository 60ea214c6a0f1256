"""What others may build on: a short-term memory, and a place for what is too large for the context."""

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
    """Keeps what left the context where the agent can read it later. References are opaque and outlive restarts."""

    def offload_context(self, conversation_id: str, messages: Sequence[Message]) -> str: ...

    def offload_tool_result(self, conversation_id: str, result: ToolResultPart) -> str: ...

    def read(self, conversation_id: str, reference: str, *, offset: int = 0, limit: int = 20_000) -> str: ...
