"""An operator's own OFFLOADER, which keeps oversized content in this process's memory."""

from __future__ import annotations

from collections.abc import Sequence

from chatapp.operations.errors import NotFound
from memory.types import Message, ToolResultPart


class MemoryOffloader:
    kept: dict[tuple[str, str], str] = {}

    def offload_context(self, conversation_id: str, messages: Sequence[Message]) -> str:
        before = self.kept.get((conversation_id, "context"), "")
        text = before + "".join(f"{message.text}\n" for message in messages)
        return self._keep(conversation_id, "context", text)

    def offload_tool_result(self, conversation_id: str, result: ToolResultPart) -> str:
        return self._keep(conversation_id, f"own-{len(self.kept)}", result.text)

    def offload_image(self, conversation_id: str, content: bytes, tool_name: str = "") -> str:
        return self._keep(conversation_id, f"own-{len(self.kept)}", content.hex())

    def read(self, conversation_id: str, reference: str, *, offset: int = 0, limit: int = 20_000) -> str:
        try:
            return self.kept[conversation_id, reference][offset : offset + limit]
        except KeyError:
            raise NotFound("Nothing is kept here under this reference.") from None

    def discard(self, conversation_id: str, references: Sequence[str]) -> None:
        for reference in references:
            self.kept.pop((conversation_id, reference), None)

    def _keep(self, conversation_id: str, reference: str, text: str) -> str:
        self.kept[conversation_id, reference] = text
        return reference
