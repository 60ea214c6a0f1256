"""Earlier turns of the same conversation, also those that left the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agents.tools.arguments import read_arguments, schema_of
from agents.tools.memory_tools import Hit, SearchArguments, list_hits
from agents.tools.protocol import ToolCaller, ToolOutput, ToolTraits
from agents.types import ToolSpec


class ConversationPort(Protocol):
    async def search(self, caller: ToolCaller, query: str, limit: int) -> Sequence[Hit]:
        """Return turns of the caller's conversation, on the branch of the question, best first."""
        ...


@dataclass(frozen=True, slots=True)
class ConversationSearch:
    port: ConversationPort

    spec: ClassVar = ToolSpec(
        "conversation_search",
        "Searches the earlier messages of this conversation, also those that are no longer shown to you.",
        schema_of(SearchArguments),
    )
    traits: ClassVar = ToolTraits(rights=frozenset({"conversation"}))

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(SearchArguments, arguments)
        hits = await self.port.search(caller, wanted.query, wanted.limit)
        return ToolOutput(list_hits(hits) or "Nothing in this conversation matches.")
