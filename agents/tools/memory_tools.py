"""Tools for the user's memory, by words, day, entry or around a message, and for earlier turns of the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Protocol

from pydantic import Field

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.protocol import Right, ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import ToolSpec
from memory.language.neutral_text import quote_speaker_lines

HIT_CHARS = 1_000
MAX_AROUND = 20

_RIGHTS: frozenset[Right] = frozenset({"memory"})


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was said or remembered. `source` names it for `memory_read`, e.g. `message 0199…`."""

    text: str
    source: str
    said_at: datetime
    role: str = ""


class MemoryPort(Protocol):
    """Reads the caller's memory. Raises ToolFailure if there is nothing to read."""

    async def search(self, caller: ToolCaller, query: str, limit: int) -> Sequence[Hit]: ...

    async def read_day(self, caller: ToolCaller, day: date) -> str: ...

    async def read_entry(self, caller: ToolCaller, entry_id: str) -> str: ...

    async def read_around(self, caller: ToolCaller, message_id: str, around: int) -> Sequence[Hit]: ...


def list_hits(hits: Sequence[Hit], limit_chars: int = HIT_CHARS) -> str:
    """Return the hits, each with number, time and speaker. Lines of a hit cannot pass as another speaker's."""
    return "\n\n".join(f"{number}. {_shown(hit, limit_chars)}" for number, hit in enumerate(hits, 1))


def _shown(hit: Hit, limit_chars: int) -> str:
    text = hit.text if len(hit.text) <= limit_chars else f"{hit.text[:limit_chars]} […]"
    said = " · ".join(part for part in (f"{hit.said_at:%Y-%m-%d %H:%M} UTC", hit.role, hit.source) if part)
    return quote_speaker_lines(f"{said}\n{text}")


class SearchArguments(Arguments):
    query: str = Field(min_length=1, max_length=500, description="Words, or a question.")
    limit: int = Field(8, ge=1, le=30)


class ReadArguments(Arguments):
    """Exactly one of `day`, `entry_id` and `message_id`."""

    day: date | None = Field(None, description="All of one day, as YYYY-MM-DD.")
    entry_id: str | None = Field(None, max_length=100, description="One memory entry.")
    message_id: str | None = Field(None, max_length=100, description="The messages around this one.")
    around: int = Field(4, ge=0, le=MAX_AROUND, description="Messages before and after it.")


@dataclass(frozen=True, slots=True)
class MemorySearch:
    port: MemoryPort

    spec: ClassVar = ToolSpec(
        "memory_search",
        "Searches everything the user ever said, was told or has in memory, over all conversations.",
        schema_of(SearchArguments),
    )
    traits: ClassVar = ToolTraits(rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(SearchArguments, arguments)
        hits = await self.port.search(caller, wanted.query, wanted.limit)
        return ToolOutput(list_hits(hits) or "Nothing was found.")


@dataclass(frozen=True, slots=True)
class MemoryRead:
    port: MemoryPort

    spec: ClassVar = ToolSpec(
        "memory_read",
        "Reads the user's memory: a whole day, one entry, or the messages around one that memory_search found.",
        schema_of(ReadArguments),
    )
    traits: ClassVar = ToolTraits(rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(ReadArguments, arguments)
        match wanted:
            case ReadArguments(day=date() as day, entry_id=None, message_id=None):
                return ToolOutput(await self.port.read_day(caller, day))
            case ReadArguments(day=None, entry_id=str() as entry_id, message_id=None):
                return ToolOutput(await self.port.read_entry(caller, entry_id))
            case ReadArguments(day=None, entry_id=None, message_id=str() as message_id):
                said = await self.port.read_around(caller, message_id, wanted.around)
                return ToolOutput(list_hits(said, limit_chars=10 * HIT_CHARS))
        raise ToolFailure("Give exactly one of day, entry_id and message_id.")


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
